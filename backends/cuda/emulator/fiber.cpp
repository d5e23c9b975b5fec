// Switches stacks on x86-64, and says so to sanitizers.
#include "backends/cuda/emulator/fiber.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(MODELFLOW_TSAN)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}
#endif

// Saves the registers that a function must keep on the old stack and continues on the new one.
extern "C" void modelflow_switch_stack(void** from, void* to);
asm(R"(
.text
.globl modelflow_switch_stack
.hidden modelflow_switch_stack
.type modelflow_switch_stack, @function
modelflow_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size modelflow_switch_stack, .-modelflow_switch_stack
)");

namespace modelflow::cuda::emulated {
namespace {

#if defined(__SANITIZE_ADDRESS__)
void start_switch(void** fake, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(fake, bottom, size);
}
void finish_switch(void* fake, const void** bottom, std::size_t* size) {
  __sanitizer_finish_switch_fiber(fake, bottom, size);
}
#else
void start_switch(void**, const void*, std::size_t) {}
void finish_switch(void*, const void**, std::size_t*) {}
#endif

#if defined(MODELFLOW_TSAN)
void switch_tsan(void* fiber) { __tsan_switch_to_fiber(fiber, 1); }
#else
void switch_tsan(void*) {}
#endif

}  // namespace

Fiber::~Fiber() {
#if defined(MODELFLOW_TSAN)
  if (context_.tsan) __tsan_destroy_fiber(context_.tsan);
#endif
  if (!stack_) return;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStack);  // what comes to lie there next knows nothing of it
#endif
  munmap(stack_, kStack);
}

Fiber::Fiber(Fiber&& other) noexcept
    : context_(std::exchange(other.context_, {})), stack_(std::exchange(other.stack_, nullptr)) {}

void Fiber::prepare(void (*entry)()) {
  if (!stack_) {
    void* memory = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    stack_ = static_cast<std::byte*>(memory);
  }
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStack);  // what the last one left behind
#endif
#if defined(MODELFLOW_TSAN)
  if (!context_.tsan) context_.tsan = __tsan_create_fiber(0);
#endif
  auto** top = reinterpret_cast<void**>(stack_ + kStack - 64);
  *top = reinterpret_cast<void*>(entry);  // where the switch returns to, 8 below a multiple of 16 as at any entry
  *(top + 1) = nullptr;
  std::fill(top - 6, top, nullptr);
  context_.stack_pointer = top - 6;
  context_.asan = nullptr;
}

void Fiber::resume(Context& from) {
#if defined(MODELFLOW_TSAN)
  from.tsan = __tsan_get_current_fiber();
#endif
  switch_tsan(context_.tsan);
  start_switch(&from.asan, stack_, kStack);
  modelflow_switch_stack(&from.stack_pointer, context_.stack_pointer);
  finish_switch(from.asan, nullptr, nullptr);
}

void Fiber::leave(Context& to, bool last) {
  switch_tsan(to.tsan);
  start_switch(last ? nullptr : &context_.asan, to.bottom, to.size);
  modelflow_switch_stack(&context_.stack_pointer, to.stack_pointer);
  finish_switch(context_.asan, &to.bottom, &to.size);
}

void Fiber::arrived(Context& from) { finish_switch(nullptr, &from.bottom, &from.size); }

#if defined(MODELFLOW_TSAN)
void acquire(void* address) { __tsan_acquire(address); }
void release(void* address) { __tsan_release(address); }
#else
void acquire(void*) {}
void release(void*) {}
#endif

}  // namespace modelflow::cuda::emulated
