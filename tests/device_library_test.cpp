// Libraries of device code, of which only the table is there: which devices run them and as what, which calls their
// kernels take, and what these cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "backends/cuda/device_target.h"
#include "backends/cuda/invocation.h"
#include "backends/ops/conv_attrs.h"
#include "modelflow/kernel.h"
#include "modelflow/pass.h"
#include "tests/call_model.h"

namespace modelflow {
namespace {

using cuda::DeviceLibrary, cuda::DeviceNumbers;

const char* describe_two(int device, DeviceNumbers* numbers) {
  if (device > 1) return "invalid device ordinal";
  *numbers = device == 0 ? DeviceNumbers{"H100", 90, 132, 227 << 10, 50 << 20, std::int64_t{80} << 30, 0, 0}
                         : DeviceNumbers{"T4", 75, 40, 64 << 10, 4 << 20, std::int64_t{16} << 30, 0, 0};
  return nullptr;
}

/// Device 0 is an H100, 1 a T4.
DeviceLibrary library_for(const char* architectures) {
  DeviceLibrary library = {};
  library.cuda = 13000;
  library.architectures = architectures;
  library.describe = describe_two;
  return library;
}

TEST(DeviceLibrary, CodeRunsOnItsGenerationAndPtxOnLaterOnes) {
  constexpr std::array devices = {75, 80, 86, 90, 100, 120};
  using Codes = std::array<int, devices.size()>;
  for (const auto& [architectures, codes] : {std::pair("75-virtual", Codes{75, 75, 75, 75, 75, 75}),
                                             {"90-real", Codes{0, 0, 0, 90, 0, 0}},
                                             {"75-real+80-real+90", Codes{75, 80, 80, 90, 90, 90}},
                                             {"80-real+75", Codes{75, 80, 80, 75, 75, 75}},
                                             {"86", Codes{0, 0, 86, 86, 86, 86}},
                                             {"90a", Codes{0, 0, 0, 90, 0, 0}},
                                             {"100f", Codes{0, 0, 0, 0, 100, 0}},
                                             {"", Codes{}}})
    for (std::size_t i = 0; i < devices.size(); ++i)
      EXPECT_EQ(cuda::code_for(architectures, devices[i]), codes[i]) << architectures << " on " << devices[i];
}

/// What an H100 compiles from the PTX of older devices has nothing of its own.
TEST(DeviceLibrary, ATargetIsTheCodeThatRuns) {
  const DeviceLibrary all = library_for("75-real+80-real+90"), old = library_for("75");
  EXPECT_EQ(cuda::target_of(all, 0).sm, 90);
  EXPECT_EQ(cuda::target_of(all, 1).sm, 75);
  EXPECT_EQ(cuda::target_of(old, 0).sm, 75);
  EXPECT_EQ(cuda::target_of(old, 0).flops, cuda::target_of(all, 0).flops) << "of the device, as it is";
  for (const char* none : {"120-real", "70"}) {
    const DeviceLibrary library = library_for(none);
    try {
      cuda::target_of(library, 0);
      ADD_FAILURE() << none;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("H100 is of sm_90"), std::string::npos) << text;
      EXPECT_NE(text.find("code for " + std::string(none)), std::string::npos) << text;
    }
  }
}

TEST(DeviceLibrary, EachDeviceIsATargetOfItsOwn) {
  const DeviceLibrary library = library_for("80-real+90");
  cuda::DeviceTargets targets(library);
  const cuda::DeviceTargets::Found &h100 = targets.of(0), &t4 = targets.of(1);
  ASSERT_TRUE(h100.target);
  EXPECT_EQ(h100.target->cores, 132);
  EXPECT_FALSE(t4.target);
  EXPECT_NE(t4.why.find("T4"), std::string::npos) << t4.why;
  EXPECT_FALSE(targets.of(2).target);
  EXPECT_EQ(&targets.of(0), &h100) << "is asked once";
}

TEST(DeviceLibrary, ServesDriversThatAreNewEnoughAndHaveADeviceForIt) {
  const DeviceLibrary library = library_for("80-real+90");
  EXPECT_TRUE(cuda::serves(library, {13000, {90}}));
  EXPECT_TRUE(cuda::serves(library, {13020, {75, 80}}));
  EXPECT_FALSE(cuda::serves(library, {12090, {90}}));
  EXPECT_FALSE(cuda::serves(library, {13000, {75}}));
  EXPECT_FALSE(cuda::serves(library, {13000, {}}));
}

TEST(DeviceLibrary, WhatAGraphCannotHoldIsRefusedWhereOneIsRecorded) {
  DeviceLibrary library = library_for("90");
  int stream = 0;
  library.capturing = [](void*) { return false; };
  EXPECT_NO_THROW(cuda::refuse_capture(library, &stream, "this"));
  library.capturing = [](void*) { return true; };
  EXPECT_NO_THROW(cuda::refuse_capture(library, nullptr, "this")) << "no graph is recorded of the default stream";
  EXPECT_THROW(cuda::refuse_capture(library, &stream, "this"), Error);
}

const Kernel& kernel_named(std::string_view name) { return **std::ranges::find(kernels(), name, &Kernel::name); }

/// Operands that broadcast have as many axes in a launch as they have, where none of them merge.
TEST(DeviceLibrary, KernelsTakeNoMoreAxesThanALaunchHas) {
  const Target target = Target::parse("cuda:sm_90");
  for (const char* name : {"cuda.pointwise", "cuda.layer_norm", "cuda.softmax", "cuda.qadd", "cuda.reduce",
                           "cuda.embedding", "cuda.pointwise_scan", "cuda.matmul"}) {
    const Kernel& kernel = kernel_named(name);
    int taken = 0;
    for (Call call : find_fused_op(kernel.op)->samples()) {
      if (!kernel.accepts(call, target)) continue;
      ++taken;
      Dims dims(9, 2);
      const Dims had = call.inputs[0].shape.values();
      std::ranges::copy_backward(had, dims.end());
      call.inputs[0].shape = Shape::of(dims);
      const Verdict verdict = kernel.accepts(call, target);
      EXPECT_FALSE(verdict) << name << " " << describe(call);
      EXPECT_NE(verdict.reason.find("more than 8 axes"), std::string::npos) << name << ": " << verdict.reason;
    }
    EXPECT_GT(taken, 0) << name;
  }
}

double seconds(const char* kernel, const Call& call, DType type) {
  Call typed = in_type(call, type);
  if (const Verdict verdict = find_fused_op(typed.op)->infer(typed); !verdict)
    throw Error(ErrorKind::internal, verdict.reason);
  return kernel_named(kernel).cost(typed, Target::parse("cuda:sm_90"));
}

/// Heads of more than 128 numbers take plain arithmetic, which is what they cost.
TEST(DeviceLibrary, LongHeadsCostWhatTheyTake) {
  const auto attention = [](std::int64_t size) {
    Call call{"Attention", find_fused_op("Attention")->defaults, {}, {}};
    for (const char* name : {"q", "k", "v"}) call.inputs.push_back({name, DType::f32, Shape::of({4, 8, 2048, size})});
    for (const char* layout : {"q_layout", "k_layout", "v_layout", "y_layout"}) call.attrs.set(layout, "BNSH");
    for (const char* heads : {"num_heads", "kv_heads"}) call.attrs.set(heads, std::int64_t{8});
    return call;
  };
  EXPECT_GT(seconds("cuda.attention", attention(256), DType::f16),
            5 * seconds("cuda.attention", attention(128), DType::f16));
  EXPECT_GE(seconds("cuda.attention", attention(256), DType::f16),
            seconds("cuda.attention", attention(256), DType::f32));
  EXPECT_LT(seconds("cuda.attention", attention(128), DType::f16),
            seconds("cuda.attention", attention(128), DType::f32) / 5);
}

/// So do convolutions in groups, and those of images whose channels are not last.
TEST(DeviceLibrary, ConvolutionsCostWhatTheyTake) {
  const auto conv = [](std::int64_t group, const char* layout) {
    const bool last = std::string_view(layout) == "NHWC";
    Call call =
        ops::conv_call(last ? Dims{8, 56, 56, 256} : Dims{8, 256, 56, 56}, {256, 256 / group, 3, 3},
                       {{"group", group}, {"x_layout", std::string(layout)}, {"y_layout", std::string(layout)}});
    return std::pair(seconds("cuda.conv", call, DType::f16), seconds("cuda.conv", call, DType::f32));
  };
  for (const auto& [group, layout] : {std::pair(2, "NHWC"), {1, "NCHW"}, {2, "NCHW"}}) {
    const auto [half, single] = conv(group, layout);
    EXPECT_GE(half, single) << group << " " << layout;
  }
  const auto [half, single] = conv(1, "NHWC");
  EXPECT_LT(half, single / 5);
}

}  // namespace
}  // namespace modelflow
