// The conformance walk of a device: every call that its kernels take, in every type of float, beside the body of the
// op, run by ONNX Runtime on numbers of that type in float32. The device is the emulator, or a GPU where
// MODELFLOW_CUDA_LIBRARY names libmodelflow_ort_cuda.so.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <tuple>

#include "backends/cuda/device_target.h"
#include "backends/cuda/invocation.h"
#include "modelflow/kernel.h"
#include "tests/cuda/cases.h"
#include "tests/cuda/numbers.h"

namespace modelflow {
namespace {

class DeviceConformance : public testing::TestWithParam<std::tuple<const Kernel*, DType>> {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    library_ = cuda::device_library(&why);
    if (!runtime_ || !library_) GTEST_SKIP() << why;
    target_ = cuda::target_of(*library_);
  }

  int walk(const Kernel& kernel, const Call& sample) {
    const Case made = case_of(sample, std::get<DType>(GetParam()));
    if (!kernel.takes(made.call, target_) || too_much_to_emulate(made.call, *library_)) return 0;
    const std::vector<Tensor> want = reference(*runtime_, sample, made);
    Target small = target_;  // how work is cut depends on the multiprocessors that there are
    small.cores = 1;
    for (const Target& target : {target_, small}) {
      const std::unique_ptr<Implementation> ready = kernel.create(made.call, target);
      cuda::DeviceInvocation invocation(*library_, made.operands);
      ready->run(invocation);
      for (std::size_t i = 0; i < want.size(); ++i) {
        const Tensor got = invocation.result(i, made.call.outputs[i].dtype);
        const std::string apart = cuda::difference(want[i], got);
        EXPECT_EQ(apart, "") << kernel.name << " " << describe(sample);
      }
    }
    EXPECT_GT(kernel.cost(made.call, target_), 0) << kernel.name;
    return 1;
  }

  std::shared_ptr<Runtime> runtime_;
  const cuda::DeviceLibrary* library_ = nullptr;
  Target target_;
};

TEST_P(DeviceConformance, EqualsTheBody) {
  const Kernel& kernel = *std::get<const Kernel*>(GetParam());
  if (!kernel.fits(target_)) GTEST_SKIP() << "for other devices";
  int taken = 0;
  const std::vector<Call> samples = find_fused_op(kernel.op)->samples();
  for (const Call& sample : samples) taken += walk(kernel, sample);
  EXPECT_GT(taken, 0) << "takes no sample of its op";
  std::cout << kernel.name << ": " << taken << " of " << samples.size() << " samples\n";
}

std::vector<const Kernel*> device_kernels() {
  std::vector<const Kernel*> found;
  for (const Kernel* kernel : kernels())
    if (kernel->device == Device::cuda) found.push_back(kernel);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Kernels, DeviceConformance,
                         testing::Combine(testing::ValuesIn(device_kernels()),
                                          testing::Values(DType::f32, DType::f16, DType::bf16)),
                         [](const auto& param) {
                           std::string text(std::get<const Kernel*>(param.param)->name);
                           std::ranges::replace(text, '.', '_');
                           return text + "_" + std::string(name(std::get<DType>(param.param)));
                         });

}  // namespace
}  // namespace modelflow
