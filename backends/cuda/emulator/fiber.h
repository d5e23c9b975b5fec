// A stack of its own that the calling thread runs on for a while: what a CUDA thread is on the host. Tells
// AddressSanitizer and ThreadSanitizer of each change of stacks; this file is compiled without the latter, with
// MODELFLOW_TSAN, as fibers share its state by design.
#pragma once

#include <cstddef>

namespace modelflow::cuda::emulated {

/// What a stack has to remember while another one runs.
struct Context {
  void* stack_pointer = nullptr;
  void* tsan = nullptr;          ///< ThreadSanitizer's fiber
  void* asan = nullptr;          ///< AddressSanitizer's fake stack
  const void* bottom = nullptr;  ///< of the thread's own stack, and its size
  std::size_t size = 0;
};

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(Fiber&& other) noexcept;
  Fiber& operator=(Fiber&&) = delete;

  /// The next resume() calls entry(), which must not return: it ends in a last call of leave().
  void prepare(void (*entry)());
  /// Runs on this stack until it leaves. `from` is the calling stack's.
  void resume(Context& from);
  /// Back to the stack that resumed this one; for good with `last`.
  void leave(Context& to, bool last);
  /// What the first function on a new stack calls first.
  static void arrived(Context& from);

 private:
  static constexpr std::size_t kStack = 64 << 10;
  Context context_;
  std::byte* stack_ = nullptr;
};

/// Happens-before edges, as ThreadSanitizer sees them.
void acquire(void* address);
void release(void* address);

}  // namespace modelflow::cuda::emulated
