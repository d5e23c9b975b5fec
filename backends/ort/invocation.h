// An Invocation in ONNX Runtime: tensors, thread pool and scratch memory of one Compute call.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "backends/ort/api.h"
#include "backends/ort/scratch_pool.h"
#include "modelflow/kernel.h"

namespace modelflow::ort {

/// The inputs of a node, those that are constant filled in: asking the runtime for one takes longer than small kernels
/// take for their work.
using Known = std::vector<std::optional<Tensor>>;

/// One Compute call of the runtime: its tensors, its thread pool, its memory.
class OrtInvocation : public Invocation {
 public:
  /// `known` has an entry for every input of the node and outlives the call. `pool` gives scratch memory.
  OrtInvocation(const OrtApi& api, OrtKernelContext* context, ScratchPool& pool, const Known& known,
                std::size_t threads);
  ~OrtInvocation() override;
  OrtInvocation(const OrtInvocation&) = delete;
  OrtInvocation& operator=(const OrtInvocation&) = delete;

  std::size_t inputs() const override { return known_.size(); }
  View input(std::size_t i) const override;
  void* output(std::size_t i, std::span<const std::int64_t> dims) override;
  void parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) override;
  std::size_t threads() const override { return threads_; }
  std::byte* scratch(std::size_t bytes) override;

 private:
  struct Input {
    DType dtype = DType::undefined;
    const void* data = nullptr;
    Dims dims;
  };
  static constexpr std::size_t kUsual = 10;
  void read_input(std::size_t i);

  const OrtApi& api_;
  OrtKernelContext* context_;
  ScratchPool& pool_;
  const Known& known_;
  std::size_t threads_;
  std::array<Input, kUsual> few_;
  std::vector<Input> many_;  ///< in place of those, where a node has more
  std::span<Input> inputs_;
  std::vector<ScratchPool::Block> scratch_;
};

}  // namespace modelflow::ort
