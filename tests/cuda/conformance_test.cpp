// The conformance walk of a device: every call that its kernels take, in every type of float, beside the body of the
// op, run by ONNX Runtime on numbers of that type in float32. The device is the emulator, or a GPU where
// MODELFLOW_CUDA_LIBRARY names libmodelflow_ort_cuda.so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <set>
#include <string_view>
#include <tuple>

#include "backends/cuda/invocation.h"
#include "modelflow/kernel.h"
#include "tests/cuda/cases.h"
#include "tests/cuda/device_kernels.h"
#include "tests/cuda/numbers.h"

namespace modelflow {
namespace {

class DeviceConformance : public DeviceKernels {
 protected:
  int walk(const Kernel& kernel, const Call& sample, const Target& target, float spoiled = 0) {
    const Case made = case_of(sample, std::get<DType>(GetParam()), spoiled);
    if (!kernel.takes(made.call, target) || too_much_to_emulate(made.call, *library_)) return 0;
    const std::vector<Tensor> want = reference(*runtime_, sample, made);
    const std::unique_ptr<Implementation> ready = kernel.create(made.call, target);
    cuda::DeviceInvocation invocation(*library_, made.operands);
    ready->run(invocation);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Tensor got = invocation.result(i, made.call.outputs[i].dtype);
      const std::string apart = cuda::difference(want[i], got);
      EXPECT_EQ(apart, "") << kernel.name << " " << describe(sample) << " with " << spoiled;
    }
    EXPECT_GT(kernel.cost(made.call, target), 0) << kernel.name;
    return 1;
  }
};

TEST_P(DeviceConformance, EqualsTheBody) {
  const Kernel& kernel = *std::get<const Kernel*>(GetParam());
  if (!kernel.fits(target_)) GTEST_SKIP() << "for other devices";
  int taken = 0;
  const std::vector<Call> samples = find_fused_op(kernel.op)->samples();
  // The types of 16 bits, which share their code, take turns in each sample: emulating takes minutes.
  std::size_t turn = std::get<DType>(GetParam()) == DType::bf16;
  for (const Call& sample : samples) taken += walk(kernel, sample, in_turn(turn++));
  EXPECT_GT(taken, 0) << "takes no sample of its op";
  std::cout << kernel.name << ": " << taken << " of " << samples.size() << " samples\n";
}

/// Kernels that compute each number by itself, or sum: what is not finite goes where the body lets it. (What the
/// largest of numbers is that NaN is one of, ONNX Runtime leaves open: see below.)
TEST_P(DeviceConformance, WhatIsNotFiniteComesOutAsTheBodyHasIt) {
  const Kernel& kernel = *std::get<const Kernel*>(GetParam());
  const std::set<std::string_view> ops = {"Activation",    "Pointwise",     "Softmax",  "Reduce", "Rotary",
                                          "GroupNorm",     "Concat",        "Upsample", "Pool",   "SqueezeExcite",
                                          "SelectiveScan", "PointwiseScan", "Transpose"};
  if (!kernel.fits(target_) || !ops.contains(kernel.op)) return;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Call& sample : find_fused_op(kernel.op)->samples()) {
    constexpr double kFew = 5000;
    if (sample.in(0).constant || sample.in(0).shape.known_elements() > kFew) continue;
    // Along one axis ONNX Runtime makes NaN of what other channels hold (tests/domains/images.cpp).
    if (sample.attrs.text("mode") == "linear" && sample.in(0).shape.rank() == 3) continue;
    const std::string program = sample.attrs.text("program");
    const bool largest = program.find("ReduceMax") != std::string::npos ||
                         program.find("ReduceMin") != std::string::npos || sample.attrs.text("mode") == "max";
    for (const float number : {kInfinity, -kInfinity}) walk(kernel, sample, target_, number);
    if (!largest) walk(kernel, sample, target_, std::numeric_limits<float>::quiet_NaN());
  }
}

/// More products, and batches of attention, than a grid has along the axes that few blocks fit on (65535; a few on the
/// emulator).
TEST_P(DeviceConformance, ThereIsNoEndToProductsAndBatches) {
  const Kernel& kernel = *std::get<const Kernel*>(GetParam());
  if (!kernel.fits(target_) || (kernel.op != "MatMul" && kernel.op != "Attention")) return;
  const bool attends = kernel.op == "Attention";
  const std::int64_t many = std::string_view(library_->built) == "emulated" ? 70 : 65536 + 70;
  Call call{.op = std::string(kernel.op), .attrs = find_fused_op(kernel.op)->defaults, .inputs = {}, .outputs = {}};
  for (const char* name : {"q", "k", "v"})
    if (attends) call.inputs.push_back({name, DType::f32, Shape::of({many, 1, 4, 8})});
  if (attends)
    for (const char* layout : {"q_layout", "k_layout", "v_layout", "y_layout"}) call.attrs.set(layout, "BNSH");
  else
    call.inputs = {{"a", DType::f32, Shape::of({many, 4, 8})}, {"b", DType::f32, Shape::of({many, 8, 8})}};
  call.outputs = {{"y", DType::f32, {}}};
  ASSERT_TRUE(find_fused_op(kernel.op)->infer(call));
  for (const std::size_t turn : {0, 1}) EXPECT_EQ(walk(kernel, call, in_turn(turn)), 1);
}

std::vector<Call> calls_for_the_largest() {
  std::vector<Call> calls;
  const auto add = [&](const char* op, const Attrs& attrs, const Dims& dims) {
    Call call{op, find_fused_op(op)->defaults, {{"x", DType::f32, Shape::of(dims)}}, {}};
    for (const auto& [name, value] : attrs) call.attrs.set(name, value);
    if (!find_fused_op(op)->infer(call)) throw Error(ErrorKind::internal, "a call contradicts itself");
    calls.push_back(std::move(call));
  };
  for (const char* op : {"ReduceMax", "ReduceMin"})
    for (const std::int64_t axis : {-1, -2})
      for (const Dims& dims : {Dims{5, 7}, Dims{7, 600}, Dims{3, 8}})
        add("Reduce", {{"program", std::string(op) + " x0; Neg t0"}, {"axis", axis}}, dims);
  const Ints two = {2, 2}, one = {1, 1}, pads = {1, 1, 0, 0};
  for (const std::int64_t channels : {1, 8})
    add("Pool", {{"mode", std::string("max")}, {"kernel_shape", two}, {"strides", one}, {"pads", pads}},
        {1, 3, 3, channels});
  return calls;
}

/// One number that is none spoils what it is part of, a row, a column or four windows, and nothing else.
TEST_P(DeviceConformance, TheLargestKeepsNan) {
  const auto [kernel, type] = GetParam();
  if (!kernel->fits(target_)) return;
  for (const Call& call : calls_for_the_largest()) {
    if (call.op != kernel->op) continue;
    const Case made = case_of(call, type, std::numeric_limits<float>::quiet_NaN());
    ASSERT_TRUE(kernel->takes(made.call, target_));
    cuda::DeviceInvocation invocation(*library_, made.operands);
    kernel->create(made.call, target_)->run(invocation);
    const Tensor y = in_float32(invocation.result(0, made.call.outputs[0].dtype));
    const auto spoiled = std::ranges::count_if(y.as<float>(), [](float v) { return std::isnan(v); });
    EXPECT_EQ(spoiled, call.op == "Pool" ? 4 : 1) << describe(call);
  }
}

/// A sequence whose length is 0 ends with zeros, whatever state it began with.
TEST_P(DeviceConformance, SequencesWithoutAStepEndWithZeros) {
  const Kernel& kernel = *std::get<const Kernel*>(GetParam());
  if (!kernel.fits(target_) || (kernel.op != "LSTM" && kernel.op != "GRU")) return;
  std::size_t turn = 0;
  int taken = 0;
  for (Call call : find_fused_op(kernel.op)->samples()) {
    const auto lengths = std::ranges::find(call.inputs, "lengths", &Operand::name);
    if (lengths == call.inputs.end()) continue;
    const auto given = lengths->constant->as<float>();
    std::vector<float> some(given.begin(), given.end());
    for (std::size_t i = 1; i < some.size(); i += 2) some[i] = 0;
    const Tensor changed = Tensor::of<float>(lengths->constant->dims(), some);
    lengths->constant = &changed;
    taken += walk(kernel, call, in_turn(turn++));
  }
  EXPECT_GT(taken, 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, DeviceConformance, device_kernels_in_every_type(), kernel_and_type);

}  // namespace
}  // namespace modelflow
