// int8 from samples to the model that runs: what becomes of a small convolutional network.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "modelflow/modelflow.h"

namespace modelflow {
namespace {

Tensor random(const Dims& dims, unsigned seed, float deviation = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, deviation);
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i) reinterpret_cast<float*>(bytes)[i] = normal(engine);
  });
}

Model empty_model(const char* name, std::int64_t opset = 17) {
  Model model;
  model.opsets[""] = opset;
  model.ir_version = 8;
  model.graph().name = name;
  return model;
}

/// Three convolutions with a residual sum, pooling between them, a dense layer behind.
Model network(std::int64_t opset = 17) {
  Model model = empty_model("network", opset);
  Graph& graph = model.graph();
  unsigned seed = 1;
  const auto weights = [&](Dims dims, float deviation) { return &graph.add_constant(random(dims, seed++, deviation)); };
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim::symbol("N"), 8, 16, 16})));
  const auto conv = [&](Value* in, std::int64_t from, std::int64_t to) {
    Node& node = graph.add("Conv", {in, weights({to, from, 3, 3}, 0.15f), weights({to}, 0.1f)},
                           {.attrs = {{"pads", Ints{1, 1, 1, 1}}}});
    return node.output();
  };
  const auto relu = [&](Value* in) { return graph.add("Relu", {in}).output(); };
  Value* first = relu(conv(&x, 8, 16));
  Value* second = relu(graph.add("Add", {conv(first, 16, 16), first}).output());
  const Attrs window{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  Value* pooled = graph.add("MaxPool", {second}, {.attrs = window}).output();
  Value* third = relu(conv(pooled, 16, 32));
  Value* mean = graph.add("GlobalAveragePool", {third}).output();
  Value* flat = graph.add("Flatten", {mean}).output();
  Value* y = graph.add("Gemm", {flat, weights({32, 10}, 0.3f), weights({10}, 0.1f)}).output();
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), 10}));
  graph.add_output(*y);
  return model;
}

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

/// Two dense layers, [N, 128] -> [N, 512] -> [N, 128].
Model perceptron() {
  Model model = empty_model("perceptron");
  Graph& graph = model.graph();
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim::symbol("N"), 128})));
  const auto dense = [&](Value& in, std::int64_t from, std::int64_t to, const char* name) {
    Value& w = graph.add_constant(random({from, to}, static_cast<unsigned>(to), 0.1f));
    return graph.add("MatMul", {&in, &w}, {.name = name}).output();
  };
  Value* hidden = graph.add("Relu", {dense(x, 128, 512, "first")}).output();
  Value* y = dense(*hidden, 512, 128, "second");
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), 128}));
  graph.add_output(*y);
  return model;
}

Options int8(std::size_t samples) {
  Options options;
  options.precision = Precision::i8;
  options.measure = false;
  options.calibration = [samples](std::size_t i) -> std::optional<Feeds> {
    if (i >= samples) return {};
    return Feeds{{"x", random({2, 8, 16, 16}, 100 + static_cast<unsigned>(i))}};
  };
  return options;
}

int count(const Report& report, const std::string& op) {
  const auto found = report.after.ops.find(op);
  return found == report.after.ops.end() ? 0 : found->second;
}

class LowerPrecisionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }

  static Feeds image() { return {{"x", random({2, 8, 16, 16}, 7)}}; }

  Tensor run(const Model& model, const std::filesystem::path& plugin, const Feeds& feeds = image()) {
    const std::string bytes = model.to_bytes();
    const auto session = runtime_->load_bytes(std::as_bytes(std::span(bytes)), {.threads = 2, .plugin = plugin});
    return session->run(feeds).at(0);
  }

  /// |a - b| / |a|
  static double distance(const Tensor& a, const Tensor& b) {
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < a.as<float>().size(); ++i) {
      const double x = a.as<float>()[i], y = b.as<float>()[i];
      error += (x - y) * (x - y);
      norm += x * x;
    }
    return std::sqrt(error / norm);
  }

  std::shared_ptr<Runtime> runtime_;
};

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
  for (const QuantizedReport& row : result.report.quantization->ops) EXPECT_FALSE(row.sqnr) << row.node;
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
