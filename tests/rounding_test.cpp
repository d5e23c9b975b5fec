// Rounding that makes up for its own errors: the arithmetic alone, and with samples from model to model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "modelflow/modelflow.h"
#include "src/precision/compensation.h"

namespace modelflow {
namespace {

using Floats = std::vector<float>;

Floats normal(std::size_t count, unsigned seed, float deviation = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> distribution(0, deviation);
  Floats values(count);
  for (float& value : values) value = distribution(engine);
  return values;
}

/// a [rows, inner] times b [inner, columns].
Floats product(const Floats& a, const Floats& b, std::size_t inner) {
  const std::size_t rows = a.size() / inner, columns = b.size() / inner;
  Floats y(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j) y[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return y;
}

/// Rows that are mixed of a few patterns (the same ones for the same `patterns`), and a little of their own.
Floats mixed(std::size_t rows, std::size_t depth, unsigned seed, unsigned patterns = 1) {
  constexpr std::size_t few = 12;
  Floats x = product(normal(rows * few, seed), normal(few * depth, 1000 + patterns), few);
  const Floats own = normal(rows * depth, seed + 1, 0.2F);
  std::transform(x.begin(), x.end(), own.begin(), x.begin(), std::plus<>());
  return x;
}

Moments moments(const Floats& x, std::size_t depth) {
  Moments sums(depth * depth);
  for (std::size_t i = 0; i < x.size(); i += depth)
    for (std::size_t j = 0; j < depth; ++j)
      for (std::size_t k = 0; k < depth; ++k) sums[j * depth + k] += x[i + j] * x[i + k];
  return sums;
}

constexpr std::size_t kDepth = 96, kColumns = 40, kBlock = 32;

/// Weights with 4-bit scales for blocks of their columns.
struct Rounded {
  Floats weights = normal(kDepth * kColumns, 5), scales = Floats(kColumns * kDepth / kBlock, 0.4F);
  Grid grid{.scales = scales, .block = kBlock, .least = -8, .most = 7};

  std::vector<std::int8_t> nearest() const {
    std::vector<std::int8_t> steps;
    for (const float w : weights)
      steps.push_back(static_cast<std::int8_t>(std::clamp(std::nearbyint(w / 0.4F), -8.0F, 7.0F)));
    return steps;
  }

  /// |X(W - W')| / |XW|
  double error(const Floats& x, const std::vector<std::int8_t>& steps) const {
    Floats off = weights;
    for (std::size_t i = 0; i < off.size(); ++i) off[i] -= static_cast<float>(steps[i]) * 0.4F;
    const auto norm = [](const Floats& y) { return std::sqrt(std::inner_product(y.begin(), y.end(), y.begin(), 0.0)); };
    return norm(product(x, off, kDepth)) / norm(product(x, weights, kDepth));
  }
};

TEST(Compensation, MakesUpForRoundingWhereFeaturesGoTogether) {
  const Rounded rounded;
  const auto compensation = Compensation::of(moments(mixed(400, kDepth, 1), kDepth), kDepth);
  ASSERT_TRUE(compensation);
  const auto steps = compensation->steps(rounded.weights, rounded.grid);
  EXPECT_TRUE(std::ranges::all_of(steps, [](int s) { return s >= -8 && s <= 7; }));
  for (const unsigned seed : {1U, 77U}) {  // rows that it saw, and others
    const Floats x = mixed(200, kDepth, seed);
    EXPECT_LT(rounded.error(x, steps), 0.5 * rounded.error(x, rounded.nearest())) << seed;
  }
}

TEST(Compensation, IsRoundingToNearestWhereFeaturesAreIndependent) {
  const Rounded rounded;
  Moments diagonal(kDepth * kDepth);
  for (std::size_t k = 0; k < kDepth; ++k) diagonal[k * kDepth + k] = static_cast<float>(1 + k % 7);
  const auto compensation = Compensation::of(diagonal, kDepth);
  ASSERT_TRUE(compensation);
  EXPECT_EQ(compensation->steps(rounded.weights, rounded.grid), rounded.nearest());
}

TEST(Compensation, FewSamplesAndFeaturesThatAreAlwaysZeroAreNoObstacle) {
  const Rounded rounded;
  Floats x = mixed(20, kDepth, 1);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i % kDepth == 3 || i % kDepth == 70) x[i] = 0;
  const auto compensation = Compensation::of(moments(x, kDepth), kDepth);
  ASSERT_TRUE(compensation);
  const auto steps = compensation->steps(rounded.weights, rounded.grid), nearest = rounded.nearest();
  EXPECT_LT(rounded.error(x, steps), 0.5 * rounded.error(x, nearest));
  for (const std::size_t dead : {3, 70})
    EXPECT_TRUE(std::equal(steps.begin() + static_cast<std::ptrdiff_t>(dead * kColumns),
                           steps.begin() + static_cast<std::ptrdiff_t>((dead + 1) * kColumns),
                           nearest.begin() + static_cast<std::ptrdiff_t>(dead * kColumns)))
        << "nothing else can make up for what is never read, and it for nothing";
  EXPECT_FALSE(Compensation::of(Moments(kDepth * kDepth), kDepth)) << "nothing was ever seen";
}

/// A scale of 0 is what a product by 0 has.
TEST(Compensation, ScalesThatCannotDivideGiveZeros) {
  const Rounded rounded;
  const Floats zeros(rounded.scales.size());
  const auto compensation = Compensation::of(moments(mixed(200, kDepth, 1), kDepth), kDepth);
  ASSERT_TRUE(compensation);
  const auto steps =
      compensation->steps(Floats(rounded.weights.size()), {.scales = zeros, .block = kBlock, .least = -8, .most = 7});
  EXPECT_TRUE(std::ranges::all_of(steps, [](int s) { return s == 0; }));
}

/// Three dense layers, two of which read the same value.
Model perceptron() {
  Model model;
  model.opsets[""] = 17;
  model.ir_version = 8;
  Graph& graph = model.graph();
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim::symbol("N"), 128})));
  unsigned seed = 1;
  const auto dense = [&](Value& in, std::int64_t from, std::int64_t to, bool transposed) {
    const Floats w = normal(static_cast<std::size_t>(from * to), seed++, 0.1F);
    Value& weights =
        graph.add_constant(Tensor::of<float>(transposed ? Dims{to, from} : Dims{from, to}, std::span<const float>(w)));
    Value& bias = graph.add_constant(
        Tensor::of<float>({to}, std::span<const float>(normal(static_cast<std::size_t>(to), seed++, 0.1F))));
    return graph.add("Gemm", {&in, &weights, &bias}, {.attrs = {{"transB", std::int64_t{transposed}}}}).output();
  };
  Value* hidden = graph.add("Relu", {dense(x, 128, 256, false)}).output();
  const auto out = [&](Value* y, const char* name, std::int64_t width) {
    graph.rename(*y, name);
    y->type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), width}));
    graph.add_output(*y);
  };
  out(dense(*hidden, 256, 64, true), "y", 64);
  out(dense(*hidden, 256, 96, false), "z", 96);
  return model;
}

constexpr std::int64_t kRows = 32;

Tensor rows(unsigned seed, unsigned patterns = 1) {
  return Tensor::of<float>({kRows, 128}, std::span<const float>(mixed(kRows, 128, seed, patterns)));
}

class RoundingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    runtime_ = Runtime::find(&why);
    if (!runtime_) GTEST_SKIP() << why;
  }

  static Options calibrated(Precision precision, std::function<Tensor(std::size_t)> sample) {
    Options options;
    options.precision = precision;
    options.target = Target::parse("cpu:avx512_vnni");
    options.measure = false;
    options.max_drop = 100;
    options.inputs = {Feeds{{"x", rows(3)}}};
    options.calibration = [sample](std::size_t i) -> std::optional<Feeds> {
      if (i >= 16) return {};
      return Feeds{{"x", sample(i)}};
    };
    return options;
  }

  static Options four_bits() {
    return calibrated(Precision::i4_weights, [](std::size_t i) { return rows(100 + 2 * static_cast<unsigned>(i)); });
  }

  static Options without(Options options) {
    options.disabled.insert("compensate-rounding");
    return options;
  }

  static int hits(const Report& report) {
    for (const StepReport& step : report.steps)
      if (const auto found = step.hits.find("compensate-rounding"); found != step.hits.end()) return found->second;
    return 0;
  }

  static std::string why_not(const Report& report) {
    for (const StepReport& step : report.steps)
      for (const Miss& miss : step.misses)
        if (miss.rule == "compensate-rounding") return miss.reason;
    return "";
  }

  std::vector<Tensor> run(const Model& model, const Tensor& x) {
    const std::string bytes = model.to_bytes();
    return runtime_->load_bytes(std::as_bytes(std::span(bytes)), {.threads = 1})->run({{"x", x}});
  }

  /// |a - b| / |a| over all outputs.
  double error(const Model& model, const Options& options, const Tensor& x) {
    const std::vector<Tensor> a = run(model, x), b = run(optimize(model, options).model, x);
    double error = 0, norm = 0;
    for (std::size_t k = 0; k < a.size(); ++k)
      for (std::size_t i = 0; i < a[k].as<float>().size(); ++i) {
        const double p = a[k].as<float>()[i], q = b[k].as<float>()[i];
        error += (p - q) * (p - q), norm += p * p;
      }
    return std::sqrt(error / norm);
  }

  std::shared_ptr<Runtime> runtime_;
};

TEST_F(RoundingTest, FourBitsLoseLessWithSamples) {
  const Model model = perceptron();
  const Result result = optimize(model, four_bits());
  EXPECT_EQ(hits(result.report), 3) << result.report.text();
  EXPECT_EQ(result.model.to_bytes(), optimize(model, four_bits()).model.to_bytes()) << "not the same twice";
  EXPECT_EQ(hits(optimize(model, without(four_bits())).report), 0);
  const Tensor x = rows(7);
  EXPECT_LT(error(model, four_bits(), x), 0.7 * error(model, without(four_bits()), x));
}

/// Weights in blocks beside activations in float16.
TEST_F(RoundingTest, OnAGpuToo) {
  Options options = four_bits();
  options.target = Target::parse("cuda:sm_90");
  const Model model = perceptron();
  EXPECT_EQ(hits(optimize(model, options).report), 3);
  const Tensor x = rows(7);
  EXPECT_LT(error(model, options, x), 0.7 * error(model, without(options), x));
}

/// What calibration sees has nothing to do with what judges it.
TEST_F(RoundingTest, WhatDoesNotHelpIsNotUsed) {
  const Options options = calibrated(Precision::i4_weights, [](std::size_t i) {
    return rows(100 + 2 * static_cast<unsigned>(i), i % 4 == 3 ? 2 : 1);
  });
  EXPECT_EQ(hits(optimize(perceptron(), options).report), 0);
}

TEST_F(RoundingTest, SamplesThatAreNotFiniteDoNotCount) {
  const auto spoiled = [](std::size_t i, auto is_spoiled) {
    Floats x = mixed(kRows, 128, 100 + 2 * static_cast<unsigned>(i));
    if (is_spoiled(i)) x[5] = std::numeric_limits<float>::quiet_NaN(), x[9] = std::numeric_limits<float>::infinity();
    return Tensor::of<float>({kRows, 128}, std::span<const float>(x));
  };
  const Model model = perceptron();
  const auto one = calibrated(Precision::i4_weights,
                              [&](std::size_t i) { return spoiled(i, [](std::size_t k) { return k == 1; }); });
  EXPECT_EQ(hits(optimize(model, one).report), 3);
  EXPECT_LT(error(model, one, rows(7)), 0.7 * error(model, without(one), rows(7)));
  const auto all = calibrated(Precision::i4_weights,
                              [&](std::size_t i) { return spoiled(i, [](std::size_t k) { return k % 4 != 3; }); });
  const Report report = optimize(model, all).report;
  EXPECT_EQ(hits(report), 0);
  EXPECT_EQ(why_not(report), "no sample gave finite numbers in front of it") << report.text();
}

TEST_F(RoundingTest, WhatIsTooDeepIsLeftOutWithAReason) {
  constexpr std::int64_t depth = 4128, columns = 64;
  Model model;
  model.opsets[""] = 17;
  model.ir_version = 8;
  Graph& graph = model.graph();
  Value& x = graph.add_input("x", Type::tensor(DType::f32, Shape({Dim::symbol("N"), depth})));
  const Floats w = normal(depth * columns, 1, 0.02F);
  Value& weights = graph.add_constant(Tensor::of<float>({depth, columns}, std::span<const float>(w)));
  Value& y = *graph.add("MatMul", {&x, &weights}).output();
  graph.rename(y, "y");
  y.type = Type::tensor(DType::f32, Shape({Dim::symbol("N"), columns}));
  graph.add_output(y);
  const auto sample = [](std::size_t i) {
    return Tensor::of<float>({4, depth}, std::span<const float>(normal(4 * depth, static_cast<unsigned>(i))));
  };
  Options options = calibrated(Precision::i4_weights, sample);
  options.inputs = {Feeds{{"x", sample(0)}}};
  const Report report = optimize(model, options).report;
  EXPECT_EQ(hits(report), 0);
  EXPECT_NE(why_not(report).find("4096"), std::string::npos) << report.text();
}

}  // namespace
}  // namespace modelflow
