// int8 from samples to the model that runs: what becomes of a small convolutional network.
#include "tests/lower_precision.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace modelflow {
namespace {

/// A convolution and two transposed ones that write larger images, as decoders and detectors end.
Model decoder() {
  Model model = empty_model("decoder");
  Graph& graph = model.graph();
  unsigned seed = 1;
  const auto weights = [&](Dims dims, float deviation) { return &graph.add_constant(random(dims, seed++, deviation)); };
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim::symbol("N"), 8, 16, 16})));
  const Attrs window{{"strides", Ints{2, 2}}};
  Value* first = graph.add("Conv", {&x, weights({16, 8, 1, 1}, 0.3f)}, {.name = "first"}).output();
  const auto larger = [&](Value* in, std::int64_t from, std::int64_t to, const char* act, const char* name) {
    Node& node = graph.add("ConvTranspose", {in, weights({from, to, 2, 2}, 0.3f), weights({to}, 0.1f)},
                           {.attrs = window, .name = std::string(name) + "_conv"});
    return graph.add(act, {node.output()}, {.name = name}).output();
  };
  Value* y = larger(larger(first, 16, 24, "Relu", "second"), 24, 1, "Sigmoid", "third");
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), 1, 64, 64}));
  graph.add_output(*y);
  return model;
}

/// The MLP of Llama, Qwen and Gemma: silu(x W1) * (x W2), and W3 behind it. `rounded`: as quantizers export it, with
/// QuantizeLinear and DequantizeLinear on what products read.
Model gated(bool rounded = false) {
  Model model = empty_model("gated");
  Graph& graph = model.graph();
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim::symbol("N"), 128})));
  const auto in_steps = [&](Value* value, float step, DType type) {
    if (!rounded) return value;
    const std::vector<Value*> scale = {&graph.add_constant(Tensor::scalar(step)),
                                       &graph.add_constant(Tensor::make(type, {}, [&](std::byte* zero) {
                                         *zero = std::byte(type == DType::u8 ? 128 : 0);
                                       }))};
    Value* steps = graph.add("QuantizeLinear", {value, scale[0], scale[1]}).output();
    return graph.add("DequantizeLinear", {steps, scale[0], scale[1]}).output();
  };
  const auto dense = [&](Value* in, std::int64_t from, std::int64_t to, const char* name) {
    Value* w = &graph.add_constant(random({from, to}, static_cast<unsigned>(name[0]), 0.1f));
    return graph.add("MatMul", {in, in_steps(w, 0.004f, DType::i8)}, {.name = name}).output();
  };
  Value* rows = in_steps(&x, 0.03f, DType::u8);
  Value* gate = dense(rows, 128, 256, "gate");
  Value* silu = graph.add("Mul", {gate, graph.add("Sigmoid", {gate}).output()}).output();
  Value* product = graph.add("Mul", {silu, dense(rows, 128, 256, "up")}).output();
  Value* y = dense(in_steps(product, 0.05f, DType::u8), 256, 128, "down");
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), 128}));
  graph.add_output(*y);
  return model;
}

TEST_F(LowerPrecisionTest, ConvolutionsRunInEightBitsFromEndToEnd) {
  const Model original = network();
  const Result result = optimize(original, int8(8));
  EXPECT_EQ(count(result.report, "modelflow.QConv"), 3);
  EXPECT_EQ(count(result.report, "modelflow.Quantize"), 1) << "only the input of the model is quantized on its own";
  ASSERT_TRUE(result.report.quantization);
  EXPECT_EQ(result.report.quantization->samples, 6u) << "two of eight are held back";
  EXPECT_LE(result.report.quantization->drop, 1);
  const Tensor want = run(original, {});
  EXPECT_LT(distance(want, run(result.model, plugin_path())), 0.05);
  EXPECT_LT(distance(want, run(result.model, {})), 0.05);
  EXPECT_GT(distance(want, run(result.model, {})), 1e-4) << "nothing was quantized";
}

TEST_F(LowerPrecisionTest, TransposedConvolutionsTakeTheirTurnAndTheLastOneWritesFloats) {
  const Result result = optimize(decoder(), int8(8));
  EXPECT_EQ(count(result.report, "modelflow.QConv"), 1);
  EXPECT_EQ(count(result.report, "modelflow.QConvTranspose"), 1) << result.report.text();
  EXPECT_EQ(count(result.report, "modelflow.QConvTransposeFloat"), 1) << result.report.text();
  EXPECT_EQ(count(result.report, "modelflow.Dequantize"), 0);
  ASSERT_TRUE(result.report.quantization);
  for (const char* name : {"second", "third"})
    EXPECT_EQ(std::ranges::count(result.report.quantization->ops, name, &QuantizedReport::node), 1) << name;
  const Tensor want = run(decoder(), {});
  EXPECT_LT(distance(want, run(result.model, plugin_path())), 0.05);
  EXPECT_LT(distance(want, run(result.model, {})), 0.05);
}

/// The network, with a token in front of every result as transformers of images have it: its batch is that of x.
Model with_token() {
  Model model = network();
  Graph& graph = model.graph();
  const auto ints = [&](std::int64_t value) { return &graph.add_constant(Tensor::of<std::int64_t>({1}, Ints{value})); };
  Value& batch = *graph.add("Shape", {graph.inputs()[0]}, {.attrs = {{"start", 0}, {"end", 1}}}).output();
  Value& shape = *graph.add("Concat", {&batch, ints(2)}, {.attrs = {{"axis", 0}}}).output();
  Value& token = *graph.add("Expand", {&graph.add_constant(random({1, 2}, 9)), &shape}).output();
  Value& y = *graph.outputs()[0];
  Value& both = *graph.add("Concat", {&token, &y}, {.attrs = {{"axis", 1}}}).output();
  both.type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), 12}));
  graph.add_output(both);
  return model;
}

TEST_F(LowerPrecisionTest, ExtentsAreReadOffBytes) {
  const Result result = optimize(with_token(), int8(8));
  EXPECT_EQ(count(result.report, "modelflow.QConv"), 3);
  EXPECT_EQ(count(result.report, "Shape"), 1);
  EXPECT_EQ(count(result.report, "DequantizeLinear") + count(result.report, "modelflow.Dequantize"),
            count(optimize(network(), int8(8)).report, "modelflow.Dequantize"))
      << result.report.text();
}

/// A convolution behind values that arrive in 8 bits, and one whose result a branch reads.
Model with_branch() {
  Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
g (uint8[2,8,16,16] x, bool flag) => (float[2,16,16,4] y, float[2,4,16,16] z)
<float s = {0.02}, uint8 zero = {128}, float w = {0}, float v = {0}> {
  in = DequantizeLinear(x, s, zero)  a = Conv<pads = [1, 1, 1, 1]>(in, w)  b = Relu(a)
  c = Conv(b, v)  y = Transpose<perm = [0, 2, 3, 1]>(c)
  z = If (flag) <then_branch = yes () => (float[2,4,16,16] z1) { z1 = Neg(c) },
                 else_branch = no () => (float[2,4,16,16] z2) { z2 = Identity(c) }>
})");
  Graph& graph = model.graph();
  Value &w = graph.add_constant(random({8, 8, 3, 3}, 1, 0.15f)), &v = graph.add_constant(random({4, 8, 1, 1}, 2, 0.3f));
  std::vector<Node*> convolutions;
  for (const auto& node : graph.nodes())
    if (node->is("Conv")) convolutions.push_back(node.get());
  graph.set_input(*convolutions.at(0), 1, &w);
  graph.set_input(*convolutions.at(1), 1, &v);
  return model;
}

TEST_F(LowerPrecisionTest, BytesAreNotRoundedAgainAndBranchesReadFloats) {
  const auto feeds = [](unsigned seed) {
    const Tensor bytes = Tensor::make(DType::u8, {2, 8, 16, 16}, [&](std::byte* to) {
      std::mt19937 engine(seed);
      for (int i = 0; i < 2 * 8 * 16 * 16; ++i) to[i] = static_cast<std::byte>(64 + engine() % 128);
    });
    return Feeds{{"x", bytes}, {"flag", Tensor::scalar(seed % 2 == 0)}};
  };
  Options options = int8(0);
  options.calibration = [&](std::size_t i) {
    return i < 4 ? std::optional(feeds(static_cast<unsigned>(i))) : std::nullopt;
  };
  options.max_drop = 100;
  const Result result = optimize(with_branch(), options);
  EXPECT_EQ(count(result.report, "modelflow.QConv"), 1) << result.report.text();
  EXPECT_EQ(count(result.report, "modelflow.Quantize") + count(result.report, "QuantizeLinear"), 0);
  const Tensor want = run(with_branch(), {}, feeds(9));
  EXPECT_LT(distance(want, run(result.model, plugin_path(), feeds(9))), 0.05);
  EXPECT_LT(distance(want, run(result.model, {}, feeds(9))), 0.05);
}

/// Some of its taps never leave the padding.
// The floats are there: whoever computes in floats has no reason to read what was rounded for a convolution.
TEST_F(LowerPrecisionTest, InputsThatAreReadInFloatsAsWellStayExactThere) {
  Model model = network();
  Graph& graph = model.graph();
  Value& half = graph.add_constant(Tensor::scalar(0.5F));
  Value& exact = *graph.add("Div", {&half, graph.inputs()[0]}, {.name = "exact"}).output();
  graph.add_output(exact);
  const Result result = optimize(model, int8(8));
  EXPECT_EQ(count(result.report, "modelflow.QConv"), 3);
  EXPECT_LT(distance(run(model, {}, image(), 1), run(result.model, plugin_path(), image(), 1)), 1e-6);
}

TEST_F(LowerPrecisionTest, TapsMayLieInThePaddingAlone) {
  Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2,8,4,4] x) => (float[2,8,4,4] y) <float w = {0}> {
  a = Conv<dilations = [5, 5], pads = [5, 5, 5, 5]>(x, w)  b = Relu(a)  y = Sigmoid(b)
})");
  model.graph().set_input(*model.graph().nodes().front(), 1,
                          &model.graph().add_constant(random({8, 8, 3, 3}, 1, 0.15f)));
  Options options = int8(0);
  options.max_drop = 100;
  options.calibration = [](std::size_t i) {
    return i < 4 ? std::optional(Feeds{{"x", random({2, 8, 4, 4}, static_cast<unsigned>(i))}}) : std::nullopt;
  };
  const Result result = optimize(model, options);
  EXPECT_EQ(count(result.report, "modelflow.QConv"), 1) << result.report.text();
  const Feeds feeds = {{"x", random({2, 8, 4, 4}, 9)}};
  EXPECT_LT(distance(run(model, {}, feeds), run(result.model, plugin_path(), feeds)), 0.05);
}

TEST_F(LowerPrecisionTest, ThePortableFormIsPlainQdq) {
  Options options = int8(4);
  options.level = Level::O1;
  const Result result = optimize(network(), options);
  for (const auto& [op, times] : result.report.after.ops) EXPECT_FALSE(op.starts_with("modelflow")) << op;
  EXPECT_EQ(count(result.report, "Conv"), 3);
  EXPECT_GE(count(result.report, "QuantizeLinear"), 4);
  EXPECT_LT(distance(run(network(), {}), run(result.model, {})), 0.05);
}

TEST_F(LowerPrecisionTest, TheBoundIsKept) {
  Options all = int8(8);
  all.max_drop = 100;
  const double drop = optimize(network(), all).report.quantization->drop;
  Options bounded = int8(8);
  bounded.max_drop = drop / 2;
  const Result result = optimize(network(), bounded);
  ASSERT_TRUE(result.report.quantization);
  const auto& ops = result.report.quantization->ops;
  const auto kept = [](const QuantizedReport& row) { return row.precision == "float32"; };
  if (std::all_of(ops.begin(), ops.end(), kept)) return;  // then the model is the float one
  EXPECT_LE(result.report.quantization->drop, drop / 2);
  EXPECT_GE(std::count_if(ops.begin(), ops.end(), kept), 1);
}

TEST_F(LowerPrecisionTest, AQuantizedModelRunsOnTheSameKernels) {
  Options options = int8(4);
  options.level = Level::O1;
  const Model qdq = optimize(network(), options).model;
  Options plain;
  plain.measure = false;
  const Result result = optimize(qdq, plain);
  EXPECT_EQ(count(result.report, "modelflow.QConv"), 3) << result.report.text();
  EXPECT_LT(distance(run(qdq, {}), run(result.model, plugin_path())), 5e-3);
}

TEST_F(LowerPrecisionTest, OldOpsetsAreRaised) {
  const Result result = optimize(network(11), int8(4));
  EXPECT_EQ(result.model.opset(), 13);
  EXPECT_EQ(count(result.report, "modelflow.QConv"), 3);
}

TEST_F(LowerPrecisionTest, TheReportSaysHowExactEachOpIs) {
  const Result result = optimize(network(), int8(8));
  ASSERT_TRUE(result.report.quantization);
  int convolutions = 0;
  for (const QuantizedReport& row : result.report.quantization->ops) {
    if (row.op != "QConv") continue;
    ++convolutions;
    ASSERT_TRUE(row.sqnr) << row.node;
    EXPECT_GT(*row.sqnr, 20) << row.node;
    EXPECT_LT(*row.sqnr, 60) << row.node << ": 8 bits cannot be so exact";
  }
  EXPECT_EQ(convolutions, 3);
}

/// Whatever timing decides, the report speaks of the model that comes out.
TEST_F(LowerPrecisionTest, TheReportListsWhatTheModelHas) {
  for (const auto& [measure, max_drop] : {std::pair(true, 100.0), std::pair(false, 100.0), std::pair(false, 0.0)}) {
    Options options = int8(8);
    options.measure = measure;
    options.max_seconds = 1;
    options.max_drop = max_drop;
    const Result result = optimize(network(), options);
    ASSERT_TRUE(result.report.quantization);
    const auto& ops = result.report.quantization->ops;
    const auto listed = std::ranges::count_if(ops, [](const QuantizedReport& row) {
      EXPECT_EQ(row.precision == "float32", !row.reason.empty()) << row.node;
      return row.op == "QConv" && row.precision == "int8";
    });
    EXPECT_EQ(listed, count(result.report, "modelflow.QConv")) << result.report.text();
    EXPECT_GE(ops.size(), 3u);
  }
}

TEST_F(LowerPrecisionTest, ProductsNeedNoSamples) {
  Options options;
  options.precision = Precision::i8_dynamic;
  options.measure = false;
  const Model model = perceptron();
  const Result result = optimize(model, options);
  EXPECT_EQ(count(result.report, "modelflow.QMatMul"), 2);
  const Feeds feeds = {{"x", random({6, 128}, 7)}};
  EXPECT_LT(distance(run(model, {}, feeds), run(result.model, plugin_path(), feeds)), 0.02);
  EXPECT_EQ(count(optimize(network(), options).report, "modelflow.QConv"), 0);
}

/// Planned for another machine, run on this one.
/// A product that another one is multiplied by has its gate in a residual, and no activation.
TEST_F(LowerPrecisionTest, GatedTransformersStayInEightBits) {
  const Feeds feeds = {{"x", random({5, 128}, 7)}};
  const Tensor want = run(gated(), {}, feeds);
  Options options = int8(8);
  options.calibration = [](std::size_t i) {
    return i < 8 ? std::optional<Feeds>({{"x", random({4, 128}, 50 + static_cast<unsigned>(i))}}) : std::nullopt;
  };
  options.max_drop = 5;
  for (const Precision precision : {Precision::i8_dynamic, Precision::i8})
    for (const char* target : {"cpu:avx512_vnni", "cpu:amx"}) {
      SCOPED_TRACE(target);
      options.precision = precision;
      options.target = Target::parse(target);
      const Result result = optimize(gated(), options);
      EXPECT_EQ(count(result.report, "modelflow.QMatMul"), 3) << result.report.text();
      EXPECT_LT(distance(want, run(result.model, plugin_path(), feeds)), 0.03);
      EXPECT_LT(distance(want, run(result.model, {}, feeds)), 0.03);
    }
}

TEST_F(LowerPrecisionTest, AGatedTransformerThatArrivesQuantizedKeepsItsSteps) {
  const Feeds feeds = {{"x", random({5, 128}, 7)}};
  const Tensor want = run(gated(true), {}, feeds);
  EXPECT_LT(distance(run(gated(), {}, feeds), want), 0.1) << "the steps are too large";
  Options options;
  options.measure = false;
  for (const char* target : {"cpu:avx512_vnni", "cpu:amx"}) {
    options.target = Target::parse(target);
    const Result result = optimize(gated(true), options);
    EXPECT_EQ(count(result.report, "modelflow.QMatMul"), 3) << result.report.text();
    EXPECT_LT(distance(want, run(result.model, plugin_path(), feeds)), 5e-3);
    EXPECT_LT(distance(want, run(result.model, {}, feeds)), 5e-3);
  }
}

TEST_F(LowerPrecisionTest, Bfloat16NeedsNoSamplesAndNoMachineThatHasIt) {
  Options options;
  options.precision = Precision::bf16;
  options.target = Target::parse("cpu:amx");
  options.measure = false;
  const Model model = perceptron();
  const Result result = optimize(model, options);
  EXPECT_EQ(count(result.report, "modelflow.MatMulToBf16"), 1) << result.report.text();
  EXPECT_EQ(count(result.report, "modelflow.MatMulBf16"), 1) << result.report.text();
  const Feeds feeds = {{"x", random({6, 128}, 7)}};
  const Tensor want = run(model, {}, feeds), got = run(result.model, plugin_path(), feeds);
  EXPECT_LT(distance(want, got), 0.01);
  EXPECT_GT(distance(want, got), 1e-4) << "nothing was rounded";
  EXPECT_LT(distance(run(result.model, {}, feeds), got), 1e-3);
  ASSERT_TRUE(result.report.quantization);
  for (const QuantizedReport& row : result.report.quantization->ops) EXPECT_EQ(row.precision, "bf16") << row.node;
}

TEST_F(LowerPrecisionTest, OldOpsetsAreRaisedForBfloat16) {
  Options options;
  options.precision = Precision::bf16;
  options.target = Target::parse("cpu:amx");
  options.measure = false;
  const Result result = optimize(network(11), options);
  EXPECT_EQ(result.model.opset(), 13);
  EXPECT_EQ(count(result.report, "modelflow.ConvBf16") + count(result.report, "modelflow.ConvToBf16"), 3)
      << result.report.text();
  EXPECT_LT(distance(run(network(), {}), run(result.model, plugin_path())), 0.01);
}

TEST_F(LowerPrecisionTest, WeightsInBfloat16LeaveActivationsAlone) {
  Options options;
  options.precision = Precision::bf16_weights;
  options.target = Target::parse("cpu:avx512");
  options.measure = false;
  const Result result = optimize(perceptron(), options);
  EXPECT_EQ(count(result.report, "modelflow.MatMulBf16"), 2) << result.report.text();
  const Feeds feeds = {{"x", random({3, 128}, 7)}};
  EXPECT_LT(distance(run(result.model, {}, feeds), run(result.model, plugin_path(), feeds)), 1e-5);
}

TEST(LowerPrecision, WithoutArithmeticForItBfloat16IsRefusedWithItsPrice) {
  Options options;
  options.precision = Precision::bf16;
  options.target = Target::parse("cpu:avx512");
  try {
    optimize(network(), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(std::string(error.what()).find("times as long as in float32 (by the cost model)"), std::string::npos)
        << error.what();
  }
}

TEST_F(LowerPrecisionTest, NothingIsRunWhereNobodyWantsIt) {
  Options options;
  options.precision = Precision::i8_dynamic;
  options.measure = options.verify = false;
  const Result result = optimize(perceptron(), options);
  EXPECT_EQ(count(result.report, "modelflow.QMatMul"), 2);
  EXPECT_FALSE(result.report.verified);
  const QuantizationReport& q = *result.report.quantization;
  for (const QuantizedReport& row : q.ops) EXPECT_FALSE(row.sqnr) << row.node;
  EXPECT_TRUE(std::isnan(q.drop)) << q.drop;
  EXPECT_TRUE(q.outputs.empty());
  ASSERT_EQ(q.frontier.size(), 1U);
  EXPECT_TRUE(std::isnan(q.frontier[0].drop) && q.frontier[0].chosen);
  options.score = [](const Model& model) { return model.graph().nodes().size() == 3 ? 1.0 : 0.995; };
  EXPECT_NEAR(optimize(perceptron(), options).report.quantization->drop, 0.5, 1e-9) << "a score needs no samples";
}

/// A sequence is not made up: nothing says what 8 bits cost.
TEST_F(LowerPrecisionTest, WhatRunsOnNoInputsStaysAsItIs) {
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (seq(float[4,128]) s) => (float[4,512] y) <float[1,1] c = {0.5}, int64[2] d = {128, 512}, int64 i = {0}> {\n"
      "  x = SequenceAt(s, i)  w = Expand(c, d)  m = MatMul(x, w)  y = Relu(m)\n}");
  for (const bool measure : {false, true}) {
    Options options;
    options.precision = Precision::i8_dynamic;
    options.measure = measure;
    const Result result = optimize(model, options);
    EXPECT_EQ(count(result.report, "modelflow.QMatMul"), 0);
    EXPECT_FALSE(result.report.verified);
    EXPECT_TRUE(std::ranges::any_of(result.report.notes, [](const std::string& note) {
      return note.find("runs on no made-up inputs") != std::string::npos;
    }));
  }
}

TEST_F(LowerPrecisionTest, AnAbsentFirstOutputHasNoError) {
  Model model = perceptron();
  Graph& graph = model.graph();
  Value& steps = graph.add_input("steps", Type::tensor(DType::f32, Shape::of({5, 2, 4})));
  Value &w = graph.add_constant(random({1, 4, 4}, 7)), &r = graph.add_constant(random({1, 4, 4}, 8));
  Node& rnn = graph.add("RNN", {&steps, &w, &r}, {.outputs = 2, .attrs = {{"hidden_size", std::int64_t{4}}}});
  Value& all = *rnn.output(0);
  graph.set_output(rnn, 0, nullptr);
  graph.erase(all);
  graph.add_output(*rnn.output(1));
  infer_types(model);
  Options options;
  options.precision = Precision::i8_dynamic;
  options.max_drop = 100;
  options.measure = false;
  const Result result = optimize(model, options);
  EXPECT_EQ(count(result.report, "modelflow.QMatMul"), 2);
  for (const QuantizedReport& row : result.report.quantization->ops) EXPECT_TRUE(row.sqnr) << row.node;
}

TEST(LowerPrecision, WithoutSamplesInt8IsAUsageError) {
  Options options;
  options.precision = Precision::i8;
  try {
    optimize(network(), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
  }
}

}  // namespace
}  // namespace modelflow
