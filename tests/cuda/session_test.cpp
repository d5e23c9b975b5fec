// Sessions of ONNX Runtime's CUDA provider with the plugin: every sample of every op that a GPU has kernels for, in
// every type of float, beside the body in float32. On a GPU, or over the stand-in for the CUDA runtime (stand_in/make),
// where NVIDIA's own kernels are refused: a node that did not run on ours would fail.
#include <gtest/gtest.h>

#include <set>

#include "tests/cuda/cases.h"
#include "tests/cuda/device_kernels.h"
#include "tests/cuda/numbers.h"

namespace modelflow {
namespace {

class CudaSessions : public OnDevice<DType> {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    const std::string bytes = model_of(find_fused_op("LayerNorm")->samples().front(), 17).to_bytes();
    try {
      runtime_->load_bytes(std::as_bytes(std::span(bytes)), {.device = Device::cuda});
    } catch (const Error& error) {
      GTEST_SKIP() << "no sessions on a GPU: " << error.what();
    }
  }

  std::vector<Tensor> run(const Case& made) {
    Feeds feeds;
    for (std::size_t i = 0; i < made.call.inputs.size(); ++i)
      if (!made.call.inputs[i].constant) feeds[made.call.inputs[i].name] = made.operands[i];
    const std::string bytes = model_of(made.call, 17).to_bytes();
    const SessionOptions options{.plugin = plugin_path(), .device = Device::cuda};
    return runtime_->load_bytes(std::as_bytes(std::span(bytes)), options)->run(feeds);
  }

  void walk(const Call& sample) {
    const Case made = case_of(sample, GetParam());
    if (too_much_to_emulate(made.call, *library_)) return;
    const std::vector<Tensor> want = reference(*runtime_, sample, made);
    std::vector<Tensor> got;
    try {
      got = run(made);
    } catch (const Error& error) {
      ADD_FAILURE() << describe(sample) << ": " << error.what();
      return;
    }
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].dtype(), made.call.outputs[i].dtype) << describe(sample);
      EXPECT_EQ(cuda::difference(want[i], got[i]), "") << describe(sample);
    }
  }
};

TEST_P(CudaSessions, EveryKernelEqualsTheBody) {
  std::set<std::string_view> ops;
  for (const Kernel* kernel : kernels())
    if (kernel->device == Device::cuda && (GetParam() == DType::f32 || takes_any_float(*find_fused_op(kernel->op))))
      ops.insert(kernel->op);
  for (const std::string_view op : ops)
    for (const Call& sample : find_fused_op(op)->samples()) walk(sample);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaSessions, testing::Values(DType::f32, DType::f16, DType::bf16),
                         [](const auto& param) { return std::string(name(param.param)); });

}  // namespace
}  // namespace modelflow
