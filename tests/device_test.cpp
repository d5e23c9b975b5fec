// A second device: its targets as text, its kernels asked for a plan on any machine, and nothing of it where it cannot
// run.
#include <gtest/gtest.h>

#include <algorithm>

#include "modelflow/error.h"
#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"

namespace modelflow {
namespace {

TEST(Device, InstructionSetsAreSets) {
  const IsaSet client = IsaSet::parse("avx2+avx_vnni");
  EXPECT_TRUE(client.has(Isa::avx2) && client.has(Isa::avx_vnni));
  EXPECT_FALSE(client.has(Isa::avx512) || client.has(Isa::avx512_vnni));
  EXPECT_EQ(client.str(), "avx_vnni");
  EXPECT_TRUE(IsaSet(Isa::amx).has(Isa::avx512_bf16));
  EXPECT_FALSE(IsaSet(Isa::amx).has(Isa::avx_vnni));
  EXPECT_EQ((IsaSet(Isa::amx) & Isa::avx512).str(), "avx512");
  EXPECT_EQ((IsaSet(Isa::avx512_bf16) | Isa::avx_vnni).str(), "avx_vnni+avx512_bf16");
  EXPECT_EQ(IsaSet().str(), "baseline");
  for (const char* text : {"", "avx", "avx2+", "avx2,avx512"}) EXPECT_THROW(IsaSet::parse(text), Error) << text;
}

TEST(Device, GpusHaveATextForm) {
  for (const char* text : {"cuda:sm_75", "cuda:sm_80", "cuda:sm_86", "cuda:sm_89", "cuda:sm_90", "cuda:sm_100",
                           "cuda:sm_120", "cuda:sm_90,cores=78,bandwidth=2e+10"}) {
    const Target target = Target::parse(text);
    EXPECT_EQ(target.device, Device::cuda);
    EXPECT_EQ(Target::parse(target.str()).str(), target.str()) << text;
    EXPECT_FALSE(target.is_host());
  }
  EXPECT_EQ(Target::parse("cuda:sm_90,cores=78").cores, 78);
  for (const char* text : {"cuda", "cuda:sm_12", "cuda:90", "gpu", "cuda:sm_90,cores=0"})
    EXPECT_THROW(Target::parse(text), Error) << text;
}

/// On machines without AVX-512 too, where 8-bit numbers are multiplied in words.
void expect_faster(const Call& floats, const Call& bytes,
                   const std::vector<std::pair<const char*, const char*>>& kernels) {
  ASSERT_EQ(floats.in(1).shape, bytes.in(1).shape);
  for (const auto& [machine, name] : kernels) {
    const Target target = Target::parse(std::string("cpu:") + machine);
    const Kernel *slow = choose_kernel(floats, target).kernel, *fast = choose_kernel(bytes, target).kernel;
    ASSERT_TRUE(slow && fast);
    EXPECT_EQ(fast->name, name);
    EXPECT_LT(fast->cost(bytes, target), slow->cost(floats, target)) << machine;
  }
}

TEST(Device, ProductsOf8BitNumbersAreFasterThanThoseOfFloats) {
  const auto first = [](const char* kind) { return find_fused_op(kind)->samples().at(0); };
  expect_faster(
      first("MatMul"), first("QMatMul"),
      {{"avx2", "cpu.qmatmul_avx2"}, {"avx_vnni", "cpu.qmatmul_avx_vnni"}, {"avx512_vnni", "cpu.qmatmul_vnni"}});
}

TEST(Device, ConvolutionsOf8BitNumbersAreFasterThanThoseOfFloats) {
  const auto layer = [](const char* kind, std::int64_t group) {
    const std::vector<Call> samples = find_fused_op(kind)->samples();
    const auto found = std::ranges::find_if(samples, [&](const Call& call) {
      const Shape& w = call.in(1).shape;
      return call.attrs.integer("group", 1) == group && w[2] == Dim(3) && call.attrs.text("x_layout", "NCHW") == "NHWC";
    });
    return found == samples.end() ? Call{} : *found;
  };
  for (const bool depthwise : {false, true}) {
    const Call bytes = layer("QConv", depthwise ? 20 : 1);
    ASSERT_EQ(bytes.op, "QConv");
    Call floats = bytes;
    floats.op = "Conv";
    const Tensor w = Tensor::make(DType::f32, bytes.in(1).constant->dims(), [](std::byte*) {});
    floats.inputs = {{"x", DType::f32, bytes.in(0).shape}, {"w", DType::f32, bytes.in(1).shape, &w}};
    if (depthwise) {
      expect_faster(floats, bytes, {{"avx2", "cpu.qconv_depthwise_avx2"}, {"avx512_vnni", "cpu.qconv_depthwise_vnni"}});
    } else {
      expect_faster(floats, bytes,
                    {{"avx2", "cpu.qconv_dense_avx2"},
                     {"avx_vnni", "cpu.qconv_dense_avx_vnni"},
                     {"avx512_vnni", "cpu.qconv_dense_vnni"}});
    }
  }
}

Call layer_norm() {
  const Shape rows({Dim::symbol("N"), Dim(768)}), row({Dim(768)});
  Call call{.op = "LayerNorm", .attrs = {{"axis", std::int64_t{-1}}}, .inputs = {}, .outputs = {}};
  call.inputs = {{"x", DType::f32, rows}, {"scale", DType::f32, row}, {"bias", DType::f32, row}};
  return call;
}

TEST(Device, AKernelOfEachIsChosenByTheTarget) {
  const Target cpu = Target::parse("cpu:avx2"), gpu = Target::parse("cuda:sm_90");
  const Choice on_cpu = choose_kernel(layer_norm(), cpu), on_gpu = choose_kernel(layer_norm(), gpu);
  ASSERT_TRUE(on_cpu.kernel && on_gpu.kernel) << on_cpu.reason << on_gpu.reason;
  EXPECT_EQ(on_cpu.kernel->device, Device::cpu);
  EXPECT_EQ(on_gpu.kernel->device, Device::cuda);
  EXPECT_GE(on_gpu.kernel->cost(layer_norm(), gpu), gpu.launch);

  Call long_rows = layer_norm();
  long_rows.inputs[0].shape = Shape({Dim(2), Dim(1 << 20)});
  EXPECT_NE(choose_kernel(long_rows, gpu).reason.find("shared memory"), std::string::npos);
  EXPECT_NE(choose_kernel(find_fused_op("QLSTM")->samples()[0], gpu).reason.find("another device"), std::string::npos);
}

/// What a kernel shares beside the row counts too.
TEST(Device, ARowLeavesRoomForWhatItsBlockSums) {
  for (const auto& [name, bytes] : {std::pair("sm_75", 64 << 10), {"sm_80", 163 << 10}, {"sm_90", 227 << 10}}) {
    const Target gpu = Target::parse(std::string("cuda:") + name);
    const auto taken = [&](std::int64_t n) {
      Call call = layer_norm();
      for (Operand& in : call.inputs) in.shape = Shape(std::vector<Dim>(1, Dim(n)));
      call.inputs[0].shape = Shape({Dim(2), Dim(n)});
      return choose_kernel(call, gpu).kernel != nullptr;
    };
    EXPECT_FALSE(taken(bytes / 4)) << name;
    EXPECT_FALSE(taken(bytes / 4 - 16)) << name;
    EXPECT_TRUE(taken(bytes / 4 - 256)) << name;
  }
}

TEST(Device, OpsWithoutAKernelStayStandard) {
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,8] x, float[8,8] w) => (float[N,8] y) { m = MatMul(x, w)  "
      "y "
      "= Relu(m) }");
  Options options;
  options.target = Target::parse("cuda:sm_90");
  const Result result = optimize(model, options);
  const auto runs = [](const Kernel* kernel) {
    return kernel->device == Device::cuda && kernel->op == "MatMul" && kernel->create;
  };
  if (std::ranges::none_of(kernels(), runs)) {
    EXPECT_TRUE(result.report.fused.empty());
    EXPECT_EQ(result.model.graph().nodes().size(), 2u);
  }
  for (const FusedReport& row : result.report.fused) EXPECT_TRUE(row.kernel.starts_with("cuda.")) << row.op;
  // Nothing of this machine is in what is planned for another one.
  EXPECT_EQ(optimize(model, options).model.to_bytes(), result.model.to_bytes());
}

TEST(Device, PrecisionsAreThoseThatItComputesIn) {
  const Model model = Model::from_text("(float[2] x) => (float[2] y) { y = Relu(x) }");
  const auto refusal = [&](const char* target, Precision precision) {
    Options options;
    options.target = Target::parse(target);
    options.precision = precision;
    options.measure = options.verify = false;
    try {
      optimize(model, options);
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      return std::string(error.what());
    }
  };
  EXPECT_NE(refusal("cpu:amx", Precision::f16).find("CPU"), std::string::npos);
  EXPECT_NE(refusal("cuda:sm_75", Precision::bf16).find("bfloat16"), std::string::npos);
  EXPECT_NE(refusal("cuda:sm_90", Precision::i8_dynamic).find("fp16"), std::string::npos);
  EXPECT_EQ(refusal("cuda:sm_75", Precision::f16), "");
  EXPECT_EQ(refusal("cuda:sm_90", Precision::bf16), "");
}

TEST(Device, ProductsOf16BitsAreThoseOfOtherUnits) {
  const Target gpu = Target::parse("cuda:sm_90"), cpu = Target::parse("cpu:avx2");
  EXPECT_LT(gpu.compute(DType::f16, 1e12), gpu.compute(DType::f32, 1e12) / 8);
  EXPECT_EQ(gpu.compute(DType::f32, 1e12), gpu.compute(1e12));
  EXPECT_EQ(cpu.compute(DType::f16, 1e12), cpu.compute(1e12));
  EXPECT_EQ(Target::parse("cuda:sm_90,half_flops=1e12").half_flops, 1e12);
}

}  // namespace
}  // namespace modelflow
