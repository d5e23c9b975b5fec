// The conformance walk of a device: every call that its kernels take, in every type of float, beside the body of the
// op, run by ONNX Runtime on numbers of that type in float32. The device is the emulator, or a GPU where
// MODELFLOW_CUDA_LIBRARY names libmodelflow_ort_cuda.so.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <tuple>

#include "backends/cuda/device_target.h"
#include "backends/cuda/invocation.h"
#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"
#include "tests/call_model.h"
#include "tests/cuda/numbers.h"

namespace modelflow {
namespace {

Tensor random(const Dims& dims, unsigned seed, DType dtype) {
  std::mt19937 engine(seed);
  if (dtype != DType::f32) throw Error(ErrorKind::internal, "samples have constants where they take no floats");
  std::normal_distribution<float> normal;
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i) reinterpret_cast<float*>(bytes)[i] = normal(engine);
  });
}

class DeviceConformance : public testing::TestWithParam<std::tuple<const Kernel*, DType>> {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    library_ = cuda::device_library(&why);
    if (!runtime_ || !library_) GTEST_SKIP() << why;
    target_ = cuda::target_of(*library_);
  }

  /// The call with its floats in this type, and operands that are exact in it.
  struct Case {
    Call call;
    std::vector<Tensor> exact, operands;  ///< in float32, in the type
  };
  static Case in_type(const Call& sample, DType type) {
    Case made{sample, {}, {}};
    unsigned seed = 1;
    for (Operand& in : made.call.inputs) {
      const Tensor values = in.constant ? *in.constant : random(in.shape.values(), seed++, in.dtype);
      const bool floats = values.dtype() == DType::f32;
      made.operands.push_back(floats ? cuda::in_type(values, type) : values);
      made.exact.push_back(floats ? cuda::in_float32(made.operands.back()) : values);
      if (floats) in.dtype = type;
    }
    for (std::size_t i = 0; i < made.call.inputs.size(); ++i) {
      Operand& in = made.call.inputs[i];
      if (in.constant) in.constant = &made.operands[i];
    }
    for (Operand& out : made.call.outputs)
      if (out.dtype == DType::f32) out.dtype = type;
    return made;
  }

  std::vector<Tensor> reference(const Call& sample, const Case& made) {
    Call exact = sample;
    Feeds feeds;
    for (std::size_t i = 0; i < exact.inputs.size(); ++i) {
      Operand& in = exact.inputs[i];
      if (in.constant)
        in.constant = &made.exact[i];
      else
        feeds[in.name] = made.exact[i];
    }
    const std::string bytes = model_of(exact, 17).to_bytes();
    return runtime_->load_bytes(std::as_bytes(std::span(bytes)), {.optimize = false})->run(feeds);
  }

  /// Layers of real models take the emulator minutes; smaller samples have the same options.
  bool is_too_much(const Call& call) const {
    constexpr double kMost = 5e6;
    const FusedOp& op = *find_fused_op(call.op);
    return std::string_view(library_->built) == "emulated" && op.flops && op.flops(call) > kMost;
  }

  int walk(const Kernel& kernel, const Call& sample) {
    const Case made = in_type(sample, std::get<DType>(GetParam()));
    if (!kernel.takes(made.call, target_) || is_too_much(made.call)) return 0;
    const std::vector<Tensor> want = reference(sample, made);
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
