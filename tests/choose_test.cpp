// Which op gets which precision: eight bits, bfloat16 or float32.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/lower_precision.h"

namespace modelflow {
namespace {

class ChooseTest : public LowerPrecisionTest {};

/// Queries, keys and values are inputs: attention is all there is to lower.
Model attention() {
  Model model = empty_model("attention");
  Graph& graph = model.graph();
  const auto tensor = [](Dims dims) { return Type::tensor(DType::f32, Shape::of(dims)); };
  const auto input = [&](const char* name) { return &graph.add_input(name, tensor({1, 4, 64, 32})); };
  Value *q = input("q"), *k = input("k"), *v = input("v");
  Value* turned = graph.add("Transpose", {k}, {.attrs = {{"perm", Ints{0, 1, 3, 2}}}}).output();
  Value* scale = &graph.add_constant(Tensor::scalar(0.2F));
  Value* scores = graph.add("Mul", {graph.add("MatMul", {q, turned}).output(), scale}).output();
  Value* shares = graph.add("Softmax", {scores}, {.attrs = {{"axis", std::int64_t{-1}}}}).output();
  Value* y = graph.add("MatMul", {shares, v}).output();
  graph.rename(*y, "y");
  y->type = tensor({1, 4, 64, 32});
  graph.add_output(*y);
  return model;
}

const QuantizedReport& row_of(const Report& report, const std::string& op) {
  for (const QuantizedReport& row : report.quantization->ops)
    if (row.op == op) return row;
  throw Error(ErrorKind::internal, "no " + op + "\n" + report.text());
}

Options automatic(const char* target) {
  Options options;
  options.precision = Precision::automatic;
  options.target = Target::parse(target);
  options.measure = false;
  return options;
}

TEST_F(ChooseTest, AutoTakesEightBitsWhereTheBoundAllows) {
  const Result result = optimize(perceptron(), automatic("cpu:amx"));
  EXPECT_EQ(count(result.report, "modelflow.QMatMul"), 2) << result.report.text();
  for (const QuantizedReport& row : result.report.quantization->ops) {
    EXPECT_EQ(row.precision, "int8-dynamic") << row.node;
    EXPECT_EQ(row.reason, "") << row.node;
  }
}

/// Products lose about 1 % in 8 bits and 0.3 % in bfloat16, each.
TEST_F(ChooseTest, AutoMixesPrecisionsToKeepTheBound) {
  Options options = automatic("cpu:amx");
  options.metric = Metric::l2;
  options.max_drop = 1.1;
  const Result mixed = optimize(perceptron(), options);
  EXPECT_EQ(count(mixed.report, "modelflow.QMatMul"), 1) << mixed.report.text();
  EXPECT_EQ(count(mixed.report, "modelflow.MatMulBf16"), 1);
  EXPECT_LE(mixed.report.quantization->drop, 1.1);
  EXPECT_EQ(row_of(mixed.report, "QMatMul").precision, "int8-dynamic");
  EXPECT_EQ(row_of(mixed.report, "MatMulBf16").precision, "bf16");
  EXPECT_EQ(row_of(mixed.report, "MatMulBf16").reason, "it costs too much accuracy");
  const Feeds feeds = {{"x", random({6, 128}, 7)}};
  EXPECT_LT(distance(run(perceptron(), {}, feeds), run(mixed.model, plugin_path(), feeds)), 0.015);

  options.max_drop = 0.5;
  const Result bf16 = optimize(perceptron(), options);
  EXPECT_EQ(count(bf16.report, "modelflow.MatMulBf16"), 1) << bf16.report.text();
  EXPECT_EQ(count(bf16.report, "modelflow.MatMulToBf16"), 1);
  EXPECT_EQ(std::ranges::count(bf16.report.quantization->frontier, true, &FrontierPoint::chosen), 1);

  options.max_drop = 0.01;
  const Result none = optimize(perceptron(), options);
  for (const QuantizedReport& row : none.report.quantization->ops) EXPECT_EQ(row.precision, "float32") << row.node;
}

TEST_F(ChooseTest, WithoutArithmeticForBfloat16AutoHasEightBitsOrFloats) {
  Options options = automatic("cpu:avx512_vnni");
  options.metric = Metric::l2;
  options.max_drop = 1.1;
  const Result result = optimize(perceptron(), options);
  EXPECT_EQ(count(result.report, "modelflow.QMatMul"), 1) << result.report.text();
  EXPECT_EQ(count(result.report, "modelflow.MatMul"), 1);
}

TEST_F(ChooseTest, AutoWithSamplesPutsConvolutionsInEightBits) {
  Options options = int8(8);
  options.precision = Precision::automatic;
  options.target = Target::parse("cpu:amx");
  const Result result = optimize(network(), options);
  EXPECT_EQ(count(result.report, "modelflow.QConv"), 3) << result.report.text();
  EXPECT_EQ(row_of(result.report, "QConv").precision, "int8");
}

/// Two products and the shares between them lose about 1.2 % of values from a normal distribution in 8 bits.
TEST_F(ChooseTest, AttentionTakesPart) {
  Options options = automatic("cpu:avx512_vnni");
  options.metric = Metric::l2;
  options.max_drop = 1.5;
  const Result low = optimize(attention(), options);
  EXPECT_EQ(count(low.report, "modelflow.QAttention"), 1) << low.report.text();
  EXPECT_EQ(row_of(low.report, "QAttention").precision, "int8-dynamic");
  options.target = Target::parse("cpu:amx");
  options.max_drop = 0.5;
  const Result half = optimize(attention(), options);
  EXPECT_EQ(count(half.report, "modelflow.AttentionBf16"), 1) << half.report.text();
  EXPECT_EQ(row_of(half.report, "AttentionBf16").precision, "bf16");
  options.max_drop = 0.01;
  const Result high = optimize(attention(), options);
  EXPECT_EQ(count(high.report, "modelflow.Attention"), 1) << high.report.text();
  EXPECT_EQ(row_of(high.report, "Attention").precision, "float32");
}

}  // namespace
}  // namespace modelflow
