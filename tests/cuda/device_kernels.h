// Tests over every kernel of a device in every type of float.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backends/cuda/device_target.h"
#include "backends/cuda/library.h"
#include "modelflow/kernel.h"
#include "modelflow/runtime.h"

namespace modelflow {

/// The device is the emulator, or a GPU where MODELFLOW_CUDA_LIBRARY names libmodelflow_ort_cuda.so.
template <class Param>
class OnDevice : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    library_ = cuda::device_library(&why);
    if (!runtime_ || !library_) GTEST_SKIP() << why;
    const cuda::DeviceTargets::Found found = cuda::DeviceTargets(*library_).of(0);
    if (!found.target) GTEST_SKIP() << found.why;
    target_ = *found.target;
  }

  /// How work is cut depends on the multiprocessors that there are: the device's in one turn, a single one in the next.
  Target in_turn(std::size_t turn) const {
    Target target = target_;
    if (turn % 2 == 1) target.cores = 1;
    return target;
  }

  std::shared_ptr<Runtime> runtime_;
  const cuda::DeviceLibrary* library_ = nullptr;
  Target target_;
};
using DeviceKernels = OnDevice<std::tuple<const Kernel*, DType>>;

/// What computes in 8 bits has float32 around it alone.
inline auto device_kernels_in_every_type() {
  std::vector<std::tuple<const Kernel*, DType>> found;
  for (const Kernel* kernel : kernels())
    for (const DType type : {DType::f32, DType::f16, DType::bf16})
      if (kernel->device == Device::cuda && (type == DType::f32 || takes_any_float(*find_fused_op(kernel->op))))
        found.emplace_back(kernel, type);
  return testing::ValuesIn(found);
}

inline std::string kernel_and_type(const testing::TestParamInfo<std::tuple<const Kernel*, DType>>& info) {
  std::string text(std::get<const Kernel*>(info.param)->name);
  std::ranges::replace(text, '.', '_');
  return text + "_" + std::string(name(std::get<DType>(info.param)));
}

}  // namespace modelflow
