// Running kernels without a runtime: an Invocation with threads of its own, for tests and benchmarks.
#pragma once

#include <memory>
#include <vector>

#include "modelflow/kernel.h"
#include "modelflow/tensor.h"

namespace modelflow {

/// A fixed set of threads that share the indices of one loop at a time; the caller takes part.
class HostThreads {
 public:
  explicit HostThreads(std::size_t threads);
  ~HostThreads();
  void run(std::size_t tasks, const std::function<void(std::size_t)>& body);
  std::size_t size() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// An Invocation without a runtime: for kernel tests and benchmarks.
///
///     HostThreads threads(2);
///     HostInvocation call(threads, {x, w});
///     kernel->create(description, Target::host())->run(call);
///     Tensor y = call.result(0);
class HostInvocation : public Invocation {
 public:
  HostInvocation(HostThreads& threads, std::vector<Tensor> inputs);
  std::size_t inputs() const override { return inputs_.size(); }
  View input(std::size_t i) const override;
  void* output(std::size_t i, std::span<const std::int64_t> dims) override;
  void parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) override;
  std::size_t threads() const override { return threads_.size(); }
  std::byte* scratch(std::size_t bytes) override;

  /// The next run may write over the outputs and the scratch memory of the last one.
  void restart() { used_scratch_ = 0; }
  /// Output `i` of the last run, of the type that the op gives it.
  Tensor result(std::size_t i, DType dtype = DType::f32) const;

 private:
  struct Block {
    std::unique_ptr<std::byte, void (*)(void*)> bytes;
    std::size_t size;
  };
  static Block allocate(std::size_t bytes);

  HostThreads& threads_;
  std::vector<Tensor> inputs_;
  struct Output {
    Dims dims;
    Block block;
  };
  std::vector<Output> outputs_;
  std::vector<Block> scratch_;
  std::size_t used_scratch_ = 0;
};

}  // namespace modelflow
