// optimize() from end to end on small models: levels, verification, what is left alone, wrong passes found and dropped.
#include <gtest/gtest.h>

#include <random>

#include "modelflow/modelflow.h"
#include "src/correct.h"
#include "src/verify/compare.h"

namespace modelflow {
namespace {

Tensor weights(const Dims& dims, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(element_count(dims)));
  for (float& value : values) value = static_cast<float>(random() % 2001) / 10000 - 0.1F;
  return Tensor::of<float>(dims, std::span<const float>(values));
}

/// Two convolutions with batch norm and Relu, a residual sum, pooling, a linear layer: a small image classifier.
Model classifier() {
  Model model;
  model.ir_version = 8;
  model.opsets[""] = 17;
  Graph& g = model.graph();
  g.name = "classifier";
  Value& x = g.add_input("image", Type::tensor(DType::f32, Shape({Dim::symbol("batch"), Dim(16), Dim(12), Dim(12)})));
  const auto conv = [&](Value* in, unsigned seed) {
    Node& node = g.add("Conv", {in, &g.add_constant(weights({16, 16, 3, 3}, seed))});
    node.attrs.set("pads", Ints{1, 1, 1, 1}).set("kernel_shape", Ints{3, 3});
    Value* scale = &g.add_constant(weights({16}, seed + 1));
    Value* variance = &g.add_constant(Tensor::of<float>({16}, std::span<const float>(std::vector<float>(16, 1.0F))));
    return g.add("BatchNormalization", {node.output(), scale, scale, scale, variance}).output();
  };
  Value* a = g.add("Relu", {conv(&x, 1)}).output();
  Value* b = g.add("Relu", {g.add("Add", {conv(a, 5), a}).output()}).output();
  Value* pooled = g.add("Flatten", {g.add("GlobalAveragePool", {b}).output()}).output();
  Node& linear = g.add("Gemm", {pooled, &g.add_constant(weights({16, 10}, 9)), &g.add_constant(weights({10}, 10))});
  g.rename(*linear.output(), "scores");
  linear.output()->type = Type::tensor(DType::f32, Shape({Dim::symbol("batch"), Dim(10)}));
  g.add_output(*linear.output());
  return model;
}

Options quick(Level level) {
  Options options;
  options.level = level;
  options.measure = false;
  return options;
}

TEST(Optimize, LevelZeroChangesNothing) {
  const Model model = classifier();
  const Result result = optimize(model, quick(Level::O0));
  EXPECT_EQ(result.model.to_bytes(), model.to_bytes());
  EXPECT_EQ(result.report.level, "O0");
}

TEST(Optimize, LevelOneUsesStandardOpsOnly) {
  const Result result = optimize(classifier(), quick(Level::O1));
  for (const auto& node : result.model.graph().nodes()) EXPECT_EQ(node->domain(), "");
  EXPECT_FALSE(result.report.after.ops.contains("BatchNormalization"));
  EXPECT_EQ(result.report.verified, Runtime::find() != nullptr);
}

TEST(Optimize, LevelTwoFusesAndVerifies) {
  const Result result = optimize(classifier(), quick(Level::O2));
  ASSERT_FALSE(result.report.verification.empty() && Runtime::find()) << result.report.text();
  for (const OutputDiff& diff : result.report.verification) EXPECT_TRUE(diff.ok) << diff.output << ' ' << diff.max_rel;
  ASSERT_EQ(result.model.graph().inputs().size(), 1U);
  EXPECT_EQ(result.model.graph().inputs()[0]->name(), "image");
  EXPECT_EQ(result.model.graph().outputs()[0]->name(), "scores");
}

TEST(Optimize, ConvolutionsBetweenNumbersInEightBitsLoad) {
  if (!Runtime::find()) GTEST_SKIP() << "no ONNX Runtime";
  const Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 13]> g (float[1,2,3,3] x) =>
    (float[1,2,3,3] y, float[1,2,3,3] z) <float s = {0.1}, uint8 p = {131}, float[2,2,1,1] w = {0.5, -1, 1.5, 2}> {
      q = QuantizeLinear(x, s, p) d = DequantizeLinear(q, s, p) z = Neg(d) c = Conv(d, w)
      r = QuantizeLinear(c, s, p) y = DequantizeLinear(r, s, p) })");
  const Result result = optimize(model, quick(Level::O2));
  EXPECT_TRUE(result.report.verified);
  EXPECT_TRUE(result.report.faults.empty());
  EXPECT_FALSE(result.report.fused.empty());
}

/// ONNX Runtime infers one channel there, and its own Conv looks at it in a run alone.
TEST(Optimize, ABranchThatIsNeverTakenMayContradictItself) {
  if (!Runtime::find()) GTEST_SKIP() << "no ONNX Runtime";
  const Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2,8,8] x, float[2,2,2] z, bool c) => (float[] y) <bool never = {0}, float[2,1,3,3] w = {1, 2, 3, 4, 5, 6,
      7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1}, float[1,1,2] v = {0.5, -0.25}, float[1,1,1] r = {0.5}> {
      n = And(c, never)
      y = If <then_branch = t () => (float[] a) { s = RNN <hidden_size = 1> (z, v, r) a = Conv <group = 2> (s, w) },
              else_branch = e () => (float[] b) { b = Conv <group = 2> (x, w) }> (n) })");
  const Result result = optimize(model, quick(Level::O2));
  EXPECT_TRUE(result.report.verified);
  EXPECT_TRUE(result.report.faults.empty()) << result.report.text();
  EXPECT_EQ(result.report.fused.size(), 2U);
}

TEST(Optimize, IsIdempotent) {
  const Result once = optimize(classifier(), quick(Level::O2));
  const Result twice = optimize(once.model, quick(Level::O2));
  EXPECT_EQ(once.report.after.ops, twice.report.after.ops);
}

TEST(Optimize, WhatIsTooMuchToFoldIsTooMuchTheNextTime) {
  if (!Runtime::find()) GTEST_SKIP() << "no ONNX Runtime";
  const Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1024] x) => (float[1024] y)
    <float zero = {0}, float half = {0.5}, float one = {1}, float limit = {512}, float more = {1024}> {
      a = Range(zero, limit, half) b = Range(zero, more, one) s = Mul(x, a) y = Add(s, b) })");
  Options options = quick(Level::O2);
  options.max_fold_bytes = 6000;  // of two constants of 4096 bytes, one
  Model once = optimize(model, options).model;
  EXPECT_EQ(once.graph().initializers().size(), 4U);
  const Result twice = optimize(once, options);
  EXPECT_EQ(twice.report.before.ops, twice.report.after.ops) << twice.report.text();
  EXPECT_TRUE(twice.report.after.ops.contains("Range"));
  for (auto& [key, value] : once.metadata) value = "no number";  // says nothing
  EXPECT_FALSE(optimize(once, options).report.after.ops.contains("Range"));
}

TEST(Optimize, FusesWhatAllPixelsHaveInCommonWithEach) {
  // DeepLab's head: what all pixels have in common joins each of them, as a product of its own and a sum.
  const Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[N,2,6,6] x) =>
    (float[N,2,6,6] y) <float[2,2,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 6, 7,
    8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1}, float[2,4,1,1] v = {1, 2, 3, 4, 4, 3, 2, 1}> {
      c = Conv<pads = [1, 1, 1, 1]>(x, w) s = Shape(c) p = GlobalAveragePool(x) e = Expand(p, s)
      k = Concat<axis = 1>(c, e) u = Conv(k, v) r = Relu(u) y = Conv<pads = [1, 1, 1, 1]>(r, w) })");
  const Result result = optimize(model, quick(Level::O2));
  EXPECT_FALSE(result.report.after.ops.contains("Relu")) << result.report.text();
}

TEST(Optimize, RefusesWhatIsNotThere) {
  Options options;
  options.precision = Precision::i8;
  EXPECT_THROW(optimize(classifier(), options), Error);
  options = quick(Level::O2);
  options.disabled.insert("no-such-pass");
  EXPECT_THROW(optimize(classifier(), options), Error);
}

TEST(Optimize, MeasuredNeverGetsSlowerThanItSays) {
  Options options;
  options.max_seconds = 2;
  const Result result = optimize(classifier(), options);
  if (!Runtime::find() || plugin_path().empty()) GTEST_SKIP() << "nothing to measure with";
  EXPECT_GE(result.report.speedup, 1.0) << result.report.text();
}

TEST(Optimize, AGivenToleranceIsNotExcused) {
  if (!Runtime::find()) GTEST_SKIP();
  Options options = quick(Level::O2);
  options.tolerance = 1e-12;  // stock ONNX Runtime's own fusions differ by more, too
  EXPECT_THROW(optimize(classifier(), options), Error);
}

TEST(Verifier, SeesAChangedWeight) {
  const auto runtime = Runtime::find();
  if (!runtime) GTEST_SKIP();
  const Model original = classifier();
  const Options options;
  const Verifier verifier(runtime, original, options, {});
  ASSERT_TRUE(verifier.possible()) << verifier.reference().why_not;
  EXPECT_TRUE(verifier.check(original).ok);
  Model wrong = original;
  for (Value* value : wrong.graph().initializers())
    if (value->initializer()->rank() == 4) wrong.graph().set_initializer(*value, weights({16, 16, 3, 3}, 77));
  const Outcome outcome = verifier.check(wrong);
  EXPECT_FALSE(outcome.ok);
  EXPECT_NE(outcome.why.find("scores"), std::string::npos) << outcome.why;
}

}  // namespace
}  // namespace modelflow
