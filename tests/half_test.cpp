// Floats of 16 bits: numbers, bodies of fused ops in them, and what CPU kernels say to that.
#include "src/core/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <list>
#include <random>

#include "modelflow/modelflow.h"
#include "src/core/half_ops.h"
#include "src/emit/body.h"
#include "src/onnx/operators.h"
#include "tests/call_model.h"

namespace modelflow {
namespace {

/// What the 16 bits stand for.
double value_of(std::uint16_t bits) {
  return Tensor::make(DType::f16, {1}, [&](std::byte* to) { std::memcpy(to, &bits, sizeof bits); }).to_doubles()[0];
}

TEST(Half, NumbersGoToTheNearestOne) {
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const auto here = static_cast<std::uint16_t>(bits);
    const double at = value_of(here), next = bits == 0x7bff ? 65536 : value_of(static_cast<std::uint16_t>(bits + 1));
    const double middle = (at + next) / 2;  // exact in float32
    const auto even = static_cast<std::uint16_t>(bits + bits % 2);
    ASSERT_EQ(to_f16(static_cast<float>(at)), here);
    ASSERT_EQ(to_f16(static_cast<float>(-at)), here | 0x8000);
    ASSERT_EQ(to_f16(static_cast<float>(middle)), even) << middle;
    ASSERT_EQ(to_f16(std::nextafter(static_cast<float>(middle), 0.0F)), here) << middle;
    ASSERT_EQ(to_f16(std::nextafter(static_cast<float>(middle), 1e9F)), here + 1) << middle;
  }
  EXPECT_EQ(to_f16(INFINITY), 0x7c00);
  EXPECT_EQ(to_f16(-1e9F), 0xfc00);
  EXPECT_TRUE(std::isnan(value_of(to_f16(NAN))));
}

TEST(Half, ConstantsStayFinite) {
  const Tensor numbers = Tensor::of<float>({4}, {-3.4e38F, 3.4028234e38F, 1, -INFINITY});
  EXPECT_EQ(to_half(numbers, DType::f16).to_doubles(), (std::vector<double>{-65504, 65504, 1, -INFINITY}));
  for (const double number : to_half(numbers, DType::bf16).to_doubles())
    EXPECT_TRUE(number > -3.4e38 ? std::isfinite(number) : true);
  EXPECT_EQ(to_half(numbers, DType::bf16).to_doubles()[0], -static_cast<double>(largest(DType::bf16)));
}

/// The samples of ops that there are in float32.
std::vector<Call> float_samples() {
  std::vector<Call> samples;
  for (const FusedOp* op : fused_ops())
    if (takes_any_float(*op))
      for (Call& call : op->samples()) samples.push_back(std::move(call));
  return samples;
}

TEST(Half, NoCpuKernelTakesIt) {
  const Target target = Target::parse("cpu:amx+avx_vnni");
  for (const Call& call : float_samples())
    for (const DType half : {DType::f16, DType::bf16}) {
      const Choice choice = choose_kernel(in_type(call, half), target);
      EXPECT_FALSE(choice.kernel) << choice.kernel->name << " takes " << name(half) << " " << describe(call);
    }
}

TEST(Half, TypesOfCalls) {
  for (const Call& call : float_samples())
    for (const DType half : {DType::f16, DType::bf16}) {
      Call typed = in_type(call, half);
      EXPECT_EQ(float_type(typed), half) << describe(call);
      typed.outputs.clear();
      ASSERT_TRUE(find_fused_op(call.op)->infer(typed)) << describe(call);
      for (std::size_t i = 0; i < typed.outputs.size(); ++i)
        EXPECT_EQ(typed.outputs[i].dtype, in_type(call, half).outputs[i].dtype) << describe(call);
    }
  Call mixed = find_fused_op("MatMul")->samples()[0];
  mixed.inputs[0].dtype = DType::f16;
  EXPECT_EQ(float_type(mixed), DType::undefined);
  EXPECT_THROW(body_text(*find_fused_op("MatMul"), mixed, 17), Error);
}

/// A kernel alone is not enough: a model with a type that the operator does not have is refused when it is loaded.
TEST(Half, WhatGpusComputeIsOnnx) {
  Graph graph;
  const auto forbids = [](const Node& node, std::size_t i, DType half, int opset) {
    return allows_input(node, i, DType::f32, opset) && !allows_input(node, i, half, opset);
  };
  for (const HalfOp& row : half_ops())
    for (const auto& [half, since] : {std::pair(DType::f16, row.f16), std::pair(DType::bf16, row.bf16)})
      for (int opset = since == 0 ? 99 : since; opset <= 24; ++opset) {
        const Node& node = graph.add(row.op, {});
        for (std::size_t i = 0; i < 8; ++i)
          EXPECT_TRUE(i == row.single || !forbids(node, i, half, opset)) << row.op << " " << opset << " " << i;
        EXPECT_TRUE(allows_output(node, 0, half, opset) || !allows_output(node, 0, DType::f32, opset)) << row.op;
      }
}

/// With its constants, which `constants` keeps.
Call typed(const Call& call, DType half, std::list<Tensor>& constants) {
  Call made = in_type(call, half);
  for (Operand& in : made.inputs)
    if (in.constant && in.dtype == half) in.constant = &constants.emplace_back(to_half(*in.constant, half));
  return made;
}

/// Runtimes without the kernels load them, whatever the model's opset allows in the type.
TEST(Half, BodiesAreOnnx) {
  for (const Call& call : float_samples())
    for (const DType half : {DType::f16, DType::bf16})
      for (const std::int64_t opset : {13, 17, 18, 20, 21, 22, 23}) {
        std::list<Tensor> constants;
        const Call made = typed(call, half, constants);
        if (!can_write(made, opset)) continue;
        EXPECT_EQ(forbidden_type(model_of(made, opset), half), "") << opset << " " << describe(call);
      }
}

TEST(Half, BeforeOpset13NothingIsBfloat16) {
  const Call call = find_fused_op("MatMul")->samples()[0];
  EXPECT_TRUE(can_write(in_type(call, DType::f16), 12));
  EXPECT_FALSE(can_write(in_type(call, DType::bf16), 12));
}

/// What one step of a recurrence rounds would go on in all that follow; steps of 8 bits are those of float32.
bool is_float32_inside(const Call& call) {
  const FusedOp& op = *find_fused_op(call.op);
  return op.family == Family::recurrence || op.form == Form::i8 || op.output_type == DType::u8;
}

class HalfBodies : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }

  std::vector<Tensor> run(const Model& model, const Feeds& feeds) {
    const std::string bytes = model.to_bytes();
    return runtime_->load_bytes(std::as_bytes(std::span(bytes)), {.threads = 2, .optimize = false})->run(feeds);
  }

  std::shared_ptr<Runtime> runtime_;
};

Tensor to_single(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_doubles();
  return Tensor::make(DType::f32, tensor.dims(), [&](std::byte* to) {
    std::ranges::transform(values, reinterpret_cast<float*>(to), [](double v) { return static_cast<float>(v); });
  });
}

/// A call in float16 and the same in float32, on the same numbers: those that float16 has.
struct Both {
  Call half, single;
  Feeds half_feeds, single_feeds;
  std::vector<Tensor> constants;
};

Both both(const Call& call) {
  Both made{.half = in_type(call, DType::f16), .single = call, .half_feeds = {}, .single_feeds = {}, .constants = {}};
  made.constants.reserve(2 * call.inputs.size());
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Operand& in = call.inputs[i];
    if (in.dtype != DType::f32) continue;
    const Tensor numbers = in.constant ? *in.constant : Tensor::make(DType::f32, in.shape.values(), [&](std::byte* to) {
      for (std::int64_t k = 0; k < element_count(in.shape.values()); ++k)
        reinterpret_cast<float*>(to)[k] = normal(engine);
    });
    const Tensor half = to_half(numbers, DType::f16), single = to_single(half);
    if (in.constant) {
      made.half.inputs[i].constant = &made.constants.emplace_back(half);
      made.single.inputs[i].constant = &made.constants.emplace_back(single);
    } else {
      made.half_feeds[in.name] = half;
      made.single_feeds[in.name] = single;
    }
  }
  return made;
}

double largest_of(const std::vector<Tensor>& tensors) {
  double most = 0;
  for (const Tensor& tensor : tensors)
    if (is_float(tensor.dtype()))
      for (const double v : tensor.to_doubles())
        if (std::isfinite(v)) most = std::max(most, std::abs(v));
  return most;
}

/// What rounding behind every node of a body may come to. Each rounds to half a last digit of a number no larger than
/// the largest of all of them; a sum of products adds up as many of these errors as it has terms, as independent ones
/// do.
double bound(const Both& call, const Model& written_out, double largest) {
  const auto rounding =
      std::ranges::count_if(written_out.graph().nodes(), [](const auto& node) { return !node->is("Constant"); });
  const FusedOp& op = *find_fused_op(call.single.op);
  const double outputs = std::max(1.0, call.single.outputs[0].shape.known_elements());
  const double depth = op.flops ? std::max(1.0, op.flops(call.single) / (2 * outputs)) : 1;
  return 0x1p-11 * static_cast<double>(rounding) * std::sqrt(depth) * largest;
}

/// All inner values of type float as outputs too.
Model opened(Model model) {
  model = inline_functions(std::move(model));
  infer_types(model);
  for (const auto& node : model.graph().nodes())
    for (Value* value : node->outputs())
      if (value && value->dtype() == DType::f32 && !value->is_graph_output()) model.graph().add_output(*value);
  return model;
}

TEST_F(HalfBodies, AreThoseOfFloat32ButForRounding) {
  for (const Call& call : float_samples()) {
    const Both calls = both(call);
    for (const std::int64_t opset : {17, 23}) {
      const Model single = model_of(calls.single, opset), half = model_of(calls.half, opset);
      const std::vector<Tensor> want = run(single, calls.single_feeds), got = run(half, calls.half_feeds);
      const Model open = opened(single);
      const double off = bound(calls, open, std::max(largest_of(run(open, calls.single_feeds)), 1.0));
      ASSERT_EQ(want.size(), got.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(got[i].dtype(), want[i].dtype() == DType::f32 ? DType::f16 : want[i].dtype()) << describe(call);
        ASSERT_EQ(got[i].dims(), want[i].dims()) << describe(call);
        const std::vector<double> a = want[i].to_doubles(), b = got[i].to_doubles();
        double worst = 0;
        for (std::size_t k = 0; k < a.size(); ++k) {
          if (a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k])) || std::abs(a[k]) > 65504) continue;
          worst = std::max(worst, std::isnan(b[k] - a[k]) ? INFINITY : std::abs(b[k] - a[k]));
        }
        EXPECT_LE(worst, off) << opset << " " << describe(call);
      }
    }
  }
}

/// So that a machine without our library computes them fast.
TEST_F(HalfBodies, StayInFloat16WhereNothingIsSummed) {
  for (const Call& call : float_samples()) {
    Model half = inline_functions(model_of(both(call).half, 17));
    infer_types(half);
    const bool sums = std::ranges::any_of(half.graph().nodes(), [](const auto& node) {
      return node->op().starts_with("Reduce") || node->attrs.text("reduction") == "add";
    });
    if (is_float32_inside(call)) continue;
    for (const auto& node : half.graph().nodes())
      EXPECT_TRUE(sums || !node->is("Cast") || node->attrs.integer("to") != 1 || node->input(0)->dtype() == DType::i64)
          << describe(call);
  }
}

/// A state of bfloat16 that is to lose less than 1/512 in each step would stay for good, and sums of steps of 8 bits
/// are beyond float16.
TEST_F(HalfBodies, OfRecurrencesAndStepsAreFloat32Inside) {
  for (const Call& call : float_samples()) {
    if (!is_float32_inside(call)) continue;
    for (const DType type : {DType::f16, DType::bf16}) {
      std::list<Tensor> constants;
      Model half = inline_functions(model_of(typed(call, type, constants), 17));
      infer_types(half);
      for (const auto& node : half.graph().nodes())
        EXPECT_TRUE(node->is("Cast") || !node->output() || node->output()->dtype() != type)
            << node->op() << " of " << describe(call);
    }
  }
}

}  // namespace
}  // namespace modelflow
