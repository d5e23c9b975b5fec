// What keeps 8 bits exact: equalized channels, corrected biases, and the search for what has to stay in float.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "modelflow/modelflow.h"
#include "passes/equalize/balance.h"
#include "src/precision/choose.h"
#include "src/verify/exact_products.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

using Names = std::set<std::string>;
using passes::balance;
using passes::Reader;

TEST(FewestKept, StopsWhereTheBoundHolds) {
  const std::map<std::string, double> cost = {{"a", 5}, {"b", 3}, {"c", 1}, {"d", 0.5}, {"e", 0.1}};
  for (const double bound : {0.0, 0.2, 2.0, 4.7, 9.5}) {
    const auto drop = [&](const Names& keep) {
      double sum = 0;
      for (const auto& [name, harm] : cost) sum += keep.contains(name) ? 0 : harm;
      return sum;
    };
    const Names keep = fewest_kept(
        {"a", "b", "c", "d", "e"}, [&](const Names& k) { return drop(k) <= bound; }, 8);
    EXPECT_LE(drop(keep), bound);
    for (const std::string& name : keep) {
      Names fewer = keep;
      fewer.erase(name);
      EXPECT_GT(drop(fewer), bound) << name << " need not stay in float for " << bound;
    }
  }
}

/// Two errors that cancel each other: with one of the two ops in float more is lost than with none.
TEST(FewestKept, TakesBackWhatTheRankingMisjudged) {
  const auto drop = [](const Names& keep) {
    const bool a = !keep.contains("a"), b = !keep.contains("b");
    return std::abs((a ? 5.0 : 0.0) - (b ? 4.8 : 0.0)) + (keep.contains("c") ? 0.0 : 3.0);
  };
  const Names keep = fewest_kept(
      {"a", "b", "c", "d"}, [&](const Names& k) { return drop(k) <= 1; }, 8);
  EXPECT_LE(drop(keep), 1);
  EXPECT_EQ(keep, (Names{"a", "b", "c"})) << "d costs nothing; a or b alone would break the bound";
  // Here one op is harmful only while another one is in float.
  const auto odd = [](const Names& k) {
    return k.contains("a") && !k.contains("b") ? k.contains("c") : k.contains("a");
  };
  const Names kept = fewest_kept({"a", "c", "b", "d"}, odd, 8);
  EXPECT_TRUE(odd(kept));
}

TEST(FewestKept, OneOpIsAllThereIs) {
  EXPECT_EQ(fewest_kept(
                {"a"}, [](const Names&) { return false; }, 8),
            Names{"a"});
}

TEST(Balance, DepthwiseReadersLoseNothing) {
  const std::vector<ChannelSize> channels = {{8, 4}, {0.5F, 0.02F}, {0, 0}};
  const std::vector<Reader> readers = {{.outputs = 3, .depthwise = true, .size = {1, 2, 3}, .square = {1, 4, 9}}};
  const auto factors = balance(channels, readers);
  ASSERT_TRUE(factors);
  EXPECT_FLOAT_EQ((*factors)[0], 1) << "the largest keeps its size";
  EXPECT_FLOAT_EQ((*factors)[1], 16);
  EXPECT_FLOAT_EQ((*factors)[2], 1) << "a channel that was never seen alive";
}

TEST(Balance, DenseReadersShareTheLoss) {
  // The outlier meets weights like all others: root(100) for each side.
  const std::vector<ChannelSize> channels = {{100, 1000}, {1, 0.1F}, {1, 0.1F}};
  const std::vector<Reader> readers = {
      {.outputs = 2, .depthwise = false, .size = {1, 1, 1, 1, 1, 1}, .square = {1, 1, 1, 1, 1, 1}}};
  const auto factors = balance(channels, readers);
  ASSERT_TRUE(factors);
  EXPECT_FLOAT_EQ((*factors)[0], 1);
  EXPECT_FLOAT_EQ((*factors)[1], 10);
}

TEST(Balance, LikeSizesStay) {
  const std::vector<ChannelSize> channels = {{1, 0.1F}, {0.9F, 0.1F}};
  const std::vector<Reader> readers = {{.outputs = 1, .depthwise = false, .size = {1, 0.9F}, .square = {1, 0.8F}}};
  EXPECT_FALSE(balance(channels, readers));
  EXPECT_FALSE(balance(std::vector<ChannelSize>(2), readers)) << "nothing was ever seen";
}

Tensor random(const Dims& dims, unsigned seed, float deviation = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, deviation);
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i) reinterpret_cast<float*>(bytes)[i] = normal(engine);
  });
}

/// Every element times the factor of its index along axis 0 or 1.
Tensor times(const Tensor& t, std::size_t axis, const std::vector<float>& factors) {
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < t.rank(); ++i) inner *= static_cast<std::size_t>(t.dims()[i]);
  return Tensor::make(DType::f32, t.dims(), [&](std::byte* out) {
    for (std::size_t i = 0; i < t.as<float>().size(); ++i)
      reinterpret_cast<float*>(out)[i] = t.as<float>()[i] * factors[i / inner % factors.size()];
  });
}

constexpr std::int64_t kChannels = 16;

std::vector<float> unlike() {
  std::vector<float> sizes;
  for (std::int64_t c = 0; c < kChannels; ++c) sizes.push_back(std::pow(0.7F, static_cast<float>(c)));
  return sizes;
}

/// Conv, Relu, Conv, Relu, pooling, dense; the channels of the first result are of very unlike sizes. In the depthwise
/// form the second convolution undoes that.
Model convolutions(bool depthwise) {
  Model model;
  model.opsets[""] = 17;
  model.ir_version = 8;
  Graph& graph = model.graph();
  const auto constant = [&](Tensor t) { return &graph.add_constant(std::move(t)); };
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim(2), 8, 12, 12})));
  const std::vector<float> sizes = unlike();
  std::vector<float> back;
  for (const float s : sizes) back.push_back(1 / s);
  const Attrs same{{"pads", Ints{1, 1, 1, 1}}};
  Value* first = graph
                     .add("Conv",
                          {&x, constant(times(random({kChannels, 8, 3, 3}, 1, 0.2F), 0, sizes)),
                           constant(times(random({kChannels}, 2, 0.2F), 0, sizes))},
                          {.attrs = same})
                     .output();
  Value* relu = graph.add("Relu", {first}).output();
  Attrs attrs = same;
  if (depthwise) attrs.set("group", kChannels);
  const Tensor w = depthwise ? times(random({kChannels, 1, 3, 3}, 3, 0.3F), 0, back)
                             : times(random({kChannels, kChannels, 3, 3}, 3, 0.1F), 1, back);
  Value* second =
      graph.add("Conv", {relu, constant(w), constant(random({kChannels}, 4, 0.1F))}, {.attrs = attrs}).output();
  Value* mean = graph.add("GlobalAveragePool", {graph.add("Relu", {second}).output()}).output();
  Value* flat = graph.add("Flatten", {mean}).output();
  Value* y =
      graph.add("Gemm", {flat, constant(random({kChannels, 10}, 5, 0.3F)), constant(random({10}, 6, 0.1F))}).output();
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim(2), 10}));
  graph.add_output(*y);
  return model;
}

/// LayerNorm with two outlying channels, then two dense layers with Relu between.
Model products() {
  Model model;
  model.opsets[""] = 17;
  model.ir_version = 8;
  Graph& graph = model.graph();
  const auto constant = [&](Tensor t) { return &graph.add_constant(std::move(t)); };
  constexpr std::int64_t width = 128;
  std::vector<float> sizes(width, 1), back(width, 1);
  for (const std::size_t outlier : {5, 77}) sizes[outlier] = 60, back[outlier] = 1.0F / 60;
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim(16), width})));
  Value* norm = graph
                    .add("LayerNormalization", {&x, constant(Tensor::of<float>({width}, std::span<const float>(sizes))),
                                                constant(random({width}, 1, 0.1F))})
                    .output();
  Value* hidden = graph.add("MatMul", {norm, constant(times(random({width, 256}, 2, 0.1F), 0, back))}).output();
  Value* relu = graph.add("Relu", {hidden}).output();
  Value* y = graph.add("MatMul", {relu, constant(random({256, 32}, 3, 0.1F))}).output();
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim(16), 32}));
  graph.add_output(*y);
  return model;
}

class RepairsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }

  static Options int8(std::function<Tensor(unsigned)> sample) {
    Options options;
    options.precision = Precision::i8;
    options.target = Target::parse("cpu:avx512_vnni");
    options.measure = false;
    options.max_drop = 100;
    options.observer = Observer::minmax;
    options.calibration = [sample](std::size_t i) -> std::optional<Feeds> {
      if (i >= 8) return {};
      return Feeds{{"x", sample(100 + static_cast<unsigned>(i))}};
    };
    return options;
  }

  Tensor run(const Model& model, const Tensor& x) {
    const auto session = open_session(*runtime_, model, {.threads = 1, .optimize = multiplies_bytes_exactly()});
    return session->run({{"x", x}}).at(0);
  }

  /// |a - b| / |a| of the model in low precision, and how far the means of its outputs are off.
  std::pair<double, double> errors(const Model& model, const Options& options, const Tensor& x) {
    const Tensor a = run(model, x), b = run(optimize(model, options).model, x);
    double error = 0, norm = 0, mean = 0;
    for (std::size_t i = 0; i < a.as<float>().size(); ++i) {
      const double p = a.as<float>()[i], q = b.as<float>()[i];
      error += (p - q) * (p - q), norm += p * p, mean += q - p;
    }
    return {std::sqrt(error / norm), std::abs(mean) / static_cast<double>(a.as<float>().size())};
  }

  static Options without(Options options, const char* pass) {
    options.disabled.insert(pass);
    return options;
  }

  static int hits(const Report& report, const std::string& pass) {
    for (const StepReport& step : report.steps)
      if (const auto found = step.hits.find(pass); found != step.hits.end()) return found->second;
    return 0;
  }

  std::shared_ptr<Runtime> runtime_;
};

TEST_F(RepairsTest, UnlikeChannelsAreEqualized) {
  const Options options = int8([](unsigned seed) { return random({2, 8, 12, 12}, seed); });
  for (const bool depthwise : {true, false}) {
    const Model model = convolutions(depthwise);
    EXPECT_EQ(hits(optimize(model, options).report, "equalize-convolutions"), 1);
    const Tensor x = random({2, 8, 12, 12}, 7);
    EXPECT_LT(errors(model, options, x).first, 0.6 * errors(model, without(options, "equalize-convolutions"), x).first)
        << depthwise;
  }
}

TEST_F(RepairsTest, OutlyingChannelsOfProductsAreEqualized) {
  const Options options = int8([](unsigned seed) { return random({16, 128}, seed); });
  const Model model = products();
  EXPECT_GE(hits(optimize(model, options).report, "equalize-products"), 1);
  const Tensor x = random({16, 128}, 7);
  EXPECT_LT(errors(model, options, x).first, 0.3 * errors(model, without(options, "equalize-products"), x).first);
}

/// A page of one colour with a few strokes: the colour falls between two steps, everywhere the same way.
Tensor page(unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  return Tensor::make(DType::f32, {2, 8, 12, 12}, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < 2 * 8 * 12 * 12; ++i)
      reinterpret_cast<float*>(bytes)[i] = uniform(engine) < 0.05F ? uniform(engine) : 76.49F / 255;
  });
}

TEST_F(RepairsTest, TheBiasMakesUpForWhatRoundingTakesFromTheMean) {
  const Options options = int8(page);
  const Model model = convolutions(false);
  const Result result = optimize(model, options);
  EXPECT_GE(hits(result.report, "correct-bias"), 2) << result.report.text();
  const Tensor x = page(7);
  const auto [error, mean] = errors(model, options, x);
  const auto [plain_error, plain_mean] = errors(model, without(options, "correct-bias"), x);
  EXPECT_LT(error, 0.7 * plain_error);
  EXPECT_LT(mean, 0.5 * plain_mean);
}

/// Conv, Relu, then a transposed convolution with an activation behind it, as decoders end.
Model decoder() {
  Model model;
  model.opsets[""] = 17;
  model.ir_version = 8;
  Graph& graph = model.graph();
  const auto constant = [&](Tensor t) { return &graph.add_constant(std::move(t)); };
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim(2), 8, 12, 12})));
  Value* first = graph.add("Conv", {&x, constant(random({16, 8, 1, 1}, 1, 0.3F))}).output();
  Value* relu = graph.add("Relu", {first}).output();
  Value* larger = graph
                      .add("ConvTranspose", {relu, constant(random({16, 4, 2, 2}, 2, 0.3F)), constant(random({4}, 3))},
                           {.attrs = {{"strides", Ints{2, 2}}}})
                      .output();
  Value* y = graph.add("LeakyRelu", {larger}).output();
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim(2), 4, 24, 24}));
  graph.add_output(*y);
  return model;
}

TEST_F(RepairsTest, BiasesOfTransposedConvolutionsAreCorrectedToo) {
  const Options options = int8(page);
  const Result result = optimize(decoder(), options);
  EXPECT_EQ(hits(result.report, "correct-bias"), 2) << result.report.text();
  const Tensor x = page(7);
  const auto [error, mean] = errors(decoder(), options, x);
  const auto [plain_error, plain_mean] = errors(decoder(), without(options, "correct-bias"), x);
  EXPECT_LT(error, plain_error);
  EXPECT_LT(mean, 0.7 * plain_mean);
}

/// Two branches of convolution and pooling, their sum (which no convolution can take in), and a convolution behind it.
Model branches() {
  Model model;
  model.opsets[""] = 17;
  model.ir_version = 8;
  Graph& graph = model.graph();
  unsigned seed = 1;
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim(2), 8, 12, 12})));
  const auto conv = [&](Value* in) {
    Value* w = &graph.add_constant(random({8, 8, 3, 3}, seed++, 0.15F));
    Value* y = graph.add("Conv", {in, w}, {.attrs = {{"pads", Ints{1, 1, 1, 1}}}}).output();
    return graph.add("Relu", {y}).output();
  };
  const Attrs window{{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
  Value* a = graph.add("MaxPool", {conv(&x)}, {.attrs = window}).output();
  Value* b = graph.add("MaxPool", {conv(&x)}, {.attrs = window}).output();
  Value* y = graph.add("GlobalAveragePool", {conv(graph.add("Add", {a, b}).output())}).output();
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim(2), 8, Dim(1), Dim(1)}));
  graph.add_output(*y);
  return model;
}

int count(const Model& model, const std::string& op) {
  int found = 0;
  for (const auto& node : model.graph().nodes()) found += node->op() == op || node->op().starts_with(op + "_");
  return found;
}

/// A score that only minds one op: one alone may stay in float32, that one or the one for which it is there.
TEST_F(RepairsTest, OnlyWhatDoesHarmStaysInFloat) {
  Options options = int8([](unsigned seed) { return random({2, 8, 12, 12}, seed); });
  EXPECT_EQ(count(optimize(branches(), options).model, "QAdd"), 1);
  options.score = [](const Model& model) { return count(model, "QAdd") > 0 ? 0.0 : 1.0; };
  options.max_drop = 1;
  const Result result = optimize(branches(), options);
  EXPECT_EQ(count(result.model, "QAdd"), 0);
  const auto for_accuracy = [](const QuantizedReport& op) { return op.reason.find("accuracy") != std::string::npos; };
  EXPECT_LE(std::ranges::count_if(result.report.quantization->ops, for_accuracy), 1) << result.report.text();
  EXPECT_GE(count(result.model, "QConv"), 2);
}

/// Convolutions in a row, told apart by their channels.
Model chain() {
  Model model;
  model.opsets[""] = 17;
  model.ir_version = 8;
  Graph& graph = model.graph();
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim(2), 8, 12, 12})));
  Value* at = &x;
  const std::int64_t channels[] = {8, 16, 24, 32, 40};
  for (unsigned i = 0; i + 1 < std::size(channels); ++i) {
    Value* w = &graph.add_constant(random({channels[i + 1], channels[i], 3, 3}, i + 1, 0.1F));
    at = graph.add("Relu", {graph.add("Conv", {at, w}, {.attrs = {{"pads", Ints{1, 1, 1, 1}}}}).output()}).output();
  }
  Value* y = graph.add("GlobalAveragePool", {at}).output();
  graph.rename(*y, "y");
  y->type = Type::tensor(DType::f32, Shape({Dim(2), 40, Dim(1), Dim(1)}));
  graph.add_output(*y);
  return model;
}

/// An op between two that run in 8 bits stays in float32 when it has to.
TEST_F(RepairsTest, AnOpInTheMiddleOfAChainCanStayInFloat) {
  Options options = int8([](unsigned seed) { return random({2, 8, 12, 12}, seed); });
  const auto with_filters = [](const Model& model, std::int64_t filters) {
    for (const auto& node : model.graph().nodes()) {
      const Tensor* w = node->input(1) ? node->input(1)->constant() : nullptr;
      if (node->op().starts_with("QConv") && w && w->dims()[0] == filters) return true;
    }
    return false;
  };
  options.score = [&](const Model& model) { return with_filters(model, 24) ? 0.0 : 1.0; };
  options.max_drop = 1;
  const Result result = optimize(chain(), options);
  const auto for_accuracy = [](const QuantizedReport& op) { return op.reason.find("accuracy") != std::string::npos; };
  EXPECT_LE(std::ranges::count_if(result.report.quantization->ops, for_accuracy), 1) << result.report.text();
  EXPECT_GE(count(result.model, "QConv"), 2);
  for (const std::int64_t filters : {16, 32, 40}) EXPECT_TRUE(with_filters(result.model, filters)) << filters;
}

}  // namespace
}  // namespace modelflow
