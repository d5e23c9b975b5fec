// What every file that calls oneDNN shares: the engine, a stream on the runtime's own threads, primitives by extents,
// post-ops.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_threadpool.hpp>
#include <oneapi/dnnl/dnnl_threadpool_iface.hpp>

#include "backends/activation.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// The one CPU engine of the process. Never destroyed: sessions may outlive static destructors.
const dnnl::engine& onednn_engine();

/// A stream whose loops run through Invocation::parallel. Make one per run(); primitives may be shared, streams not.
class OnednnStream : private dnnl::threadpool_interop::threadpool_iface {
 public:
  explicit OnednnStream(Invocation& call);
  dnnl::stream& stream() { return stream_; }
  /// Executes with the scratchpad that the primitive asks for (its attr must say scratchpad_mode::user).
  void execute(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
               std::unordered_map<int, dnnl::memory> args);

 private:
  int get_num_threads() const override;
  bool get_in_parallel() const override;
  void parallel_for(int n, const std::function<void(int, int)>& body) override;
  std::uint64_t get_flags() const override { return 0; }

  Invocation& call_;
  dnnl::stream stream_;
};

/// What was prepared for the extents seen so far. A model with ever new ones must not grow for ever: it starts over
/// then.
template <class Key, class Prepared>
class PreparedFor {
 public:
  /// `make` gives a std::shared_ptr<const Prepared>; it runs once per key, on one thread at a time.
  template <class Make>
  std::shared_ptr<const Prepared> get(const Key& key, const Make& make) {
    std::lock_guard lock(mutex_);
    if (made_.size() > kMost && !made_.contains(key)) made_.clear();
    std::shared_ptr<const Prepared>& slot = made_[key];
    if (!slot) slot = make();
    return slot;
  }

 private:
  static constexpr std::size_t kMost = 64;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Prepared>> made_;
};

/// Where the operand of a residual stands among the post-ops: before the activation, or behind it.
int residual_position(bool before, const ActivationSpec& activation);

/// Appends the activation as an eltwise post-op (nothing for none).
void append_activation(dnnl::post_ops& ops, const ActivationSpec& activation);

/// The plain weights in the layout that a primitive wants, shared through the weight cache.
std::shared_ptr<const std::byte> onednn_packed(const Tensor& weights, const dnnl::memory::desc& plain,
                                               const dnnl::memory::desc& wanted);

/// Sets how many threads primitives created from now on by this thread are planned for.
void plan_for_threads(std::size_t threads);

/// Runs `body` and turns dnnl::error into Error(unsupported) with `what` in front.
void onednn_guard(const char* what, const std::function<void()>& body);

}  // namespace modelflow::cpu
