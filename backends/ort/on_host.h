// The CPU's kernels for operands that lie on a GPU, or that are float16 or bfloat16.
#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/library.h"
#include "modelflow/kernel.h"

namespace modelflow::ort {

/// Copies the operands to the host, in float32, runs the kernel that a CPU has for this call and copies the results
/// back: right, and slow. A model that was optimized for one machine runs on another all the same.
class OnHost : public Implementation {
 public:
  /// `floats`: what stands where the op says float32. `library`: of the device that the operands lie on; null: they are
  /// on the host. Throws Error(unsupported) where the CPU has no kernel for the call.
  OnHost(const Call& call, DType floats, const Target& host, const cuda::DeviceLibrary* library);
  void run(Invocation& call) const override;

 private:
  class Operands;
  void copy(void* to, const void* from, std::size_t bytes, void* stream) const;
  void wait(void* stream) const;

  const cuda::DeviceLibrary* library_;
  bool widens_;  ///< the op has floats of one type; others have bfloat16 where they want it
  DType floats_;
  std::vector<Tensor> constants_;  ///< of the inputs, as the kernel reads them; undefined: not constant
  std::vector<DType> outputs_;     ///< as the kernel writes them
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace modelflow::ort
