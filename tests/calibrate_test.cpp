// Observers on known distributions, calibration of small models, error metrics, scales.
#include "src/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "passes/quantize/scale.h"
#include "src/calibrate/metric.h"
#include "src/calibrate/observer.h"
#include "src/calibrate/samples.h"

namespace modelflow {
namespace {

using Samples = std::vector<std::vector<float>>;

constexpr Observer kAll[] = {Observer::minmax, Observer::average, Observer::percentile, Observer::entropy,
                             Observer::mse};

template <class Distribution>
std::vector<float> draw(std::size_t count, Distribution distribution, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

Range observed(Observer how, const Samples& samples) {
  ValueObserver observer(how);
  for (const auto& sample : samples) observer.see(sample);
  return observer.range().value();
}

Histogram histogram_of(const Samples& samples) {
  Histogram histogram;
  for (const auto& sample : samples) histogram.add(sample, extent_of(sample));
  return histogram;
}

void expect_equal(const Histogram& a, const Histogram& b) {
  EXPECT_EQ(a.width(), b.width());
  EXPECT_EQ(a.edge(0), b.edge(0));
  EXPECT_EQ(a.total(), b.total());
  EXPECT_TRUE(std::ranges::equal(a.counts(), b.counts()));
}

TEST(Extent, SkipsWhatIsNotFinite) {
  std::vector<float> values = draw(1000, std::uniform_real_distribution<float>(-2, 3));
  values[7] = -4;
  values[993] = 5;
  const Extent clean = extent_of(values);
  EXPECT_EQ(clean.low, -4);
  EXPECT_EQ(clean.high, 5);
  EXPECT_EQ(clean.finite, 1000U);
  values[3] = NAN;
  values[500] = INFINITY;
  values[999] = -INFINITY;
  const Extent dirty = extent_of(values);
  EXPECT_EQ(dirty.low, -4);
  EXPECT_EQ(dirty.high, 5);
  EXPECT_EQ(dirty.skipped, 3U);
  EXPECT_EQ(extent_of({}).finite, 0U);
}

TEST(Histogram, CountsWhereValuesLie) {
  const Histogram histogram = histogram_of({{-1, -0.25F, 0, 0.25F, 0.5F, 1}});
  EXPECT_EQ(histogram.total(), 6U);
  std::uint64_t negative = 0;
  for (std::size_t i = 0; i < histogram.counts().size(); ++i)
    if (histogram.edge(i) < 0) negative += histogram.counts()[i];
  EXPECT_EQ(negative, 2U);
  EXPECT_LE(histogram.counts().size(), Histogram::kBins);
}

// However the data arrive and however often the bins were merged, the result is that of a single pass.
TEST(Histogram, GrowingIsTheSameAsOnePass) {
  const std::vector<float> all = draw(50000, std::normal_distribution<float>(0.3F, 2));
  Samples parts, backward;
  for (std::size_t i = 0, size = 1; i < all.size(); i += size, size = size * 3 / 2 + 1)
    parts.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                       all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), i + size)));
  std::ranges::sort(parts, {}, [](const auto& part) { return std::abs(part[0]); });  // growing, so bins are merged
  backward.assign(parts.rbegin(), parts.rend());
  expect_equal(histogram_of(parts), histogram_of({all}));
  expect_equal(histogram_of(backward), histogram_of({all}));
}

TEST(Histogram, ExtremeMagnitudes) {
  const float huge = std::numeric_limits<float>::max(), tiny = std::numeric_limits<float>::denorm_min();
  const Samples samples = {{0, 0, 0}, {tiny, -tiny}, {1e-20F}, {1}, {huge, -huge}};
  const Samples backward(samples.rbegin(), samples.rend());
  EXPECT_EQ(histogram_of(samples).total(), 9U);
  EXPECT_EQ(histogram_of(samples).counts().size(), histogram_of(backward).counts().size());
  for (const Observer how : kAll) {
    const Range range = observed(how, samples);
    EXPECT_TRUE(std::isfinite(range.low) && std::isfinite(range.high));
  }
}

TEST(Histogram, LargeTensorsAreSampledEvenly) {
  const std::size_t channels = 64, elements = 16 * Histogram::kMostElements;
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i % channels);  // channels last
  const Histogram last = histogram_of({values});
  for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i * channels / elements);  // first
  const Histogram first = histogram_of({values});
  for (const Histogram* histogram : {&last, &first}) {
    EXPECT_EQ(histogram->total(), Histogram::kMostElements);
    const double share = static_cast<double>(Histogram::kMostElements) / static_cast<double>(channels);
    for (const std::uint64_t count : histogram->counts())
      EXPECT_NEAR(count > 0 ? static_cast<double>(count) : share, share, 0.02 * share);
  }
}

TEST(Observers, UniformIsKeptWhole) {
  const Samples samples = {draw(200000, std::uniform_real_distribution<float>(-1, 3), 1),
                           draw(200000, std::uniform_real_distribution<float>(-1, 3), 2)};
  for (const Observer how : kAll) {
    const Range range = observed(how, samples);
    EXPECT_NEAR(range.low, -1, 0.08) << static_cast<int>(how);
    EXPECT_NEAR(range.high, 3, 0.08) << static_cast<int>(how);
  }
}

TEST(Observers, OutliersAreCutOff) {
  std::vector<float> values = draw(100000, std::normal_distribution<float>(0, 1));
  values[77] = 200;
  EXPECT_EQ(observed(Observer::minmax, {values}).high, 200);
  for (const Observer how : {Observer::percentile, Observer::entropy}) {
    const Range range = observed(how, {values});
    EXPECT_LT(range.high, how == Observer::percentile ? 5 : 80) << static_cast<int>(how);
    EXPECT_GT(range.high, 3) << static_cast<int>(how);
    EXPECT_LT(range.low, -3) << static_cast<int>(how);
  }
}

// The normal quantiles at 1e-4 and 1 - 1e-4 are -3.719 and 3.719.
TEST(Observers, PercentileOfANormalDistribution) {
  Samples samples;
  for (unsigned seed = 0; seed < 20; ++seed)
    samples.push_back(draw(100000, std::normal_distribution<float>(0, 1), seed));
  const Range range = observed(Observer::percentile, samples);
  EXPECT_NEAR(range.low, -3.719, 0.06);
  EXPECT_NEAR(range.high, 3.719, 0.06);
}

// What the squared error of rounding and clipping is, measured, has no better range nearby.
TEST(Observers, MseIsAMinimum) {
  const std::vector<float> values = draw(Histogram::kMostElements, std::student_t_distribution<float>(4));
  const auto error = [&](Range range) {
    const double step = (static_cast<double>(range.high) - range.low) / 255;
    double sum = 0;
    for (const float value : values) {
      const double kept =
          std::clamp(static_cast<double>(value), static_cast<double>(range.low), static_cast<double>(range.high));
      const double shown = range.low + std::nearbyint((kept - range.low) / step) * step;
      sum += (value - shown) * (value - shown);
    }
    return sum;
  };
  const Range found = observed(Observer::mse, {values}), whole = observed(Observer::minmax, {values});
  EXPECT_LT(error(found), error(whole));
  for (const float factor : {0.7F, 0.8F, 1.25F, 1.4F}) {
    EXPECT_LT(error(found), 1.001 * error({found.low * factor, found.high}));
    EXPECT_LT(error(found), 1.001 * error({found.low, found.high * factor}));
  }
}

TEST(Observers, OrderOfSamplesDoesNotMatter) {
  Samples samples;
  for (unsigned seed = 0; seed < 5; ++seed)
    samples.push_back(draw(
        3000, std::normal_distribution<float>(0.1F * static_cast<float>(seed), 1 + static_cast<float>(seed)), seed));
  const Samples backward(samples.rbegin(), samples.rend());
  for (const Observer how : {Observer::minmax, Observer::percentile, Observer::entropy, Observer::mse}) {
    const Range a = observed(how, samples), b = observed(how, backward);
    EXPECT_EQ(a.low, b.low) << static_cast<int>(how);
    EXPECT_EQ(a.high, b.high) << static_cast<int>(how);
  }
}

TEST(Observers, AverageOfTheExtremes) {
  const Range range = observed(Observer::average, {{-1, 2}, {-3, 4}});
  EXPECT_FLOAT_EQ(range.low, -2);
  EXPECT_FLOAT_EQ(range.high, 3);
}

TEST(Observers, AlwaysReachZero) {
  for (const Observer how : kAll) {
    const Range positive = observed(how, {{2, 3, 4}}), negative = observed(how, {{-4, -3}}),
                zero = observed(how, {{0}});
    EXPECT_EQ(positive.low, 0);
    EXPECT_GT(positive.high, 3.9F);
    EXPECT_EQ(negative.high, 0);
    EXPECT_LT(negative.low, -3.9F);
    EXPECT_EQ(zero.low, 0);
    EXPECT_EQ(zero.high, 0);
  }
}

TEST(Observers, NothingFiniteIsNoRange) {
  for (const Observer how : kAll) {
    ValueObserver observer(how);
    EXPECT_FALSE(observer.range());
    observer.see(std::vector<float>{NAN, INFINITY});
    EXPECT_FALSE(observer.range());
    observer.see(std::vector<float>{NAN, 2});
    EXPECT_EQ(observer.range().value().high, 2);
    EXPECT_EQ(observer.skipped(), 3U);
  }
}

/// relu(x + bias) with "x" and "sum" inside; x is [n, 3].
Model small_model() {
  Model model;
  model.opsets[""] = 17;
  Graph& graph = model.graph();
  const Type type = Type::tensor(DType::f32, Shape({Dim::symbol("n"), Dim(3)}));
  Value& x = graph.add_input("x", type);
  Value& bias = graph.add_constant(Tensor::of<float>({3}, {-1, 0, 1}), "bias");
  Node& sum = graph.add("Add", {&x, &bias}, {.attrs = {}, .name = "sum"});
  Node& relu = graph.add("Relu", {sum.output()}, {.attrs = {}, .name = "relu"});
  graph.rename(*sum.output(), "sum");
  graph.rename(*relu.output(), "y");
  relu.output()->type = type;
  graph.add_output(*relu.output());
  return model;
}

Options options_with(const std::vector<Tensor>& samples) {
  Options options;
  options.observer = Observer::minmax;
  options.calibration = [samples](std::size_t index) -> std::optional<Feeds> {
    if (index >= samples.size()) return std::nullopt;
    return Feeds{{"x", samples[index]}};
  };
  return options;
}

TEST(Calibrate, ValuesInsideAnInputAConstantAndAnOutput) {
  const auto runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  const Options options =
      options_with({Tensor::of<float>({1, 3}, {1, 2, 3}), Tensor::of<float>({2, 3}, {0, -5, 1, 7, 0, 0})});
  Report report;
  const Ranges ranges = calibrate(*runtime, small_model(), {"x", "sum", "y", "bias"}, options, {}, report).at(0).ranges;
  ASSERT_EQ(ranges.size(), 4U);
  EXPECT_EQ(ranges.at("x").low, -5);
  EXPECT_EQ(ranges.at("x").high, 7);
  EXPECT_EQ(ranges.at("sum").low, -5);
  EXPECT_EQ(ranges.at("sum").high, 6);
  EXPECT_EQ(ranges.at("y").low, 0);
  EXPECT_EQ(ranges.at("y").high, 6);
  EXPECT_EQ(ranges.at("bias").low, -1);
  EXPECT_EQ(report.quantization.value().samples, 2U);
  EXPECT_TRUE(report.notes.empty());
}

TEST(Calibrate, StopsWhenTheTimeIsUp) {
  const auto runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  Options options = options_with({Tensor::of<float>({1, 3}, {1, 2, 3}), Tensor::of<float>({1, 3}, {9, 9, 9})});
  options.max_seconds = 1e-9;
  Report report;
  const Ranges ranges = calibrate(*runtime, small_model(), {"x"}, options, {}, report).at(0).ranges;
  EXPECT_EQ(ranges.at("x").high, 3);
  EXPECT_EQ(report.quantization.value().samples, 1U);
  EXPECT_EQ(report.notes.size(), 1U);
}

TEST(Calibrate, WhereTheChoiceIsOursBothRangesComeFromOnePass) {
  const auto runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  std::vector<float> values = draw(3 * 5000, std::normal_distribution<float>(0, 1));
  values[0] = 100;
  Options options = options_with({Tensor::of<float>({5000, 3}, std::span<const float>(values))});
  options.observer = Observer::automatic;
  Report report;
  const auto found = calibrate(*runtime, small_model(), {"x"}, options, {}, report);
  ASSERT_EQ(found.size(), 2U);
  for (const ObservedRanges& one : found) {
    options.observer = one.observer;
    const auto alone = calibrate(*runtime, small_model(), {"x"}, options, {}, report);
    EXPECT_EQ(one.ranges.at("x").low, alone.at(0).ranges.at("x").low);
    EXPECT_EQ(one.ranges.at("x").high, alone.at(0).ranges.at("x").high);
  }
  EXPECT_EQ(found[1].ranges.at("x").high, 100);
  EXPECT_LT(found[0].ranges.at("x").high, 100) << "one outlier is worth less than finer steps for all others";
}

std::string refusal(const Options& options) {
  try {
    calibration_sample(small_model(), options, 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(Calibrate, DataThatDoNotFitAreSaid) {
  EXPECT_NE(refusal({}).find("--calibration"), std::string::npos);
  EXPECT_NE(refusal(options_with({})).find("no calibration samples"), std::string::npos);
  EXPECT_EQ(refusal(options_with({Tensor::of<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})})),
            "calibration sample 0: input 'x' is float32 [2,4], the model takes float32 [n,3]");
  EXPECT_EQ(refusal(options_with({Tensor::of<std::int64_t>({1, 3}, {1, 2, 3})})),
            "calibration sample 0: input 'x' is int64 [1,3], the model takes float32 [n,3]");
  Options options;
  options.calibration = [](std::size_t) { return Feeds{{"image", Tensor::scalar(1.0F)}}; };
  EXPECT_EQ(refusal(options), "calibration sample 0: input 'x' of the model is missing; there is 'image'");
  EXPECT_EQ(refusal(options_with({Tensor::of<float>({1, 3}, {1, 2, 3})})), "");
}

OutputError error_of(const Tensor& a, const Tensor& b) {
  ErrorMeter meter("y");
  meter.add(a, b);
  return meter.error();
}

TEST(Metric, KnownErrors) {
  const Tensor a = Tensor::of<float>({2, 2}, {3, 0, 0, 4}), b = Tensor::of<float>({2, 2}, {3, 0, 0.5F, 4});
  const OutputError same = error_of(a, a), close = error_of(a, b);
  EXPECT_EQ(same.relative_l2, 0);
  EXPECT_FALSE(same.sqnr);
  EXPECT_EQ(same.cosine, 1);
  EXPECT_EQ(same.top1, 1);
  EXPECT_EQ(drop(same, Metric::cosine), 0);
  EXPECT_NEAR(close.relative_l2, 0.1, 1e-9);
  EXPECT_NEAR(close.sqnr.value(), 20, 1e-9);
  EXPECT_NEAR(close.cosine, 25 / (5 * std::sqrt(25.25)), 1e-9);
  EXPECT_NEAR(drop(close, Metric::l2), 10, 1e-6);
  EXPECT_EQ(drop(close, Metric::top1), 0);
  const OutputError turned = error_of(a, Tensor::of<float>({2, 2}, {3, 3.5F, 0, 4}));
  EXPECT_EQ(turned.top1, 0.5);
  EXPECT_EQ(drop(turned, Metric::top1), 50);
  EXPECT_EQ(drop({same, turned}, Metric::top1), 50);
  EXPECT_EQ(drop(std::vector<OutputError>{}, Metric::cosine), 0);
}

TEST(Metric, LossesAreTotal) {
  const Tensor a = Tensor::of<float>({2}, {1, 2});
  for (const Tensor& b : {Tensor::of<float>({1}, {1}), Tensor::of<float>({2}, {1, NAN}),
                          Tensor::of<std::int64_t>({2}, {1, 2}), Tensor::of<float>({2}, {1, INFINITY})})
    for (const Metric metric : {Metric::cosine, Metric::l2, Metric::top1}) EXPECT_EQ(drop(error_of(a, b), metric), 100);
  const Tensor masked = Tensor::of<float>({3}, {1, -INFINITY, NAN});
  EXPECT_EQ(drop(error_of(masked, masked), Metric::l2), 0);
}

TEST(Metric, TheReportShowsIt) {
  Report report;
  EXPECT_TRUE(nlohmann::json::parse(report.json()).at("quantization").is_null());
  QuantizationReport& q = report.quantization.emplace();
  q.precision = "int8";
  q.metric = "cosine";
  q.max_drop = 1;
  q.drop = 0.25;
  q.samples = 12;
  const Tensor a = Tensor::of<float>({2, 2}, {3, 0, 0, 4}), b = Tensor::of<float>({2, 2}, {3, 0, 0.5F, 4});
  q.outputs = {error_of(a, b), error_of(a, Tensor::of<float>({1}, {0}))};
  q.ops = {{.node = "conv", .op = "QConv", .precision = "int8", .sqnr = 31.5, .reason = ""},
           {.node = "last", .op = "Conv", .precision = "float32", .sqnr = {}, .reason = "it writes an output"}};
  const auto json = nlohmann::json::parse(report.json()).at("quantization");
  EXPECT_EQ(json.at("samples"), 12);
  EXPECT_EQ(json.at("outputs").at(0).at("top1"), 1);
  EXPECT_TRUE(json.at("outputs").at(1).at("relative_l2").is_null());
  EXPECT_EQ(json.at("ops").at(0).at("sqnr_db"), 31.5);
  const std::string text = report.text();
  for (const char* part : {"precision int8, calibrated on 12 samples, cosine drop 0.25 % (allowed: 1 %)", "20.0 dB",
                           "1 x QConv in int8", "1 x Conv kept in float32: it writes an output", "least exact: conv"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

using namespace passes;  // NOLINT: Quantization and its relatives

TEST(Scale, ZeroIsExact) {
  EXPECT_EQ(u8_of({0, 255}), (Quantization{1, 0}));
  EXPECT_EQ(u8_of({-255, 0}), (Quantization{1, 255}));
  EXPECT_EQ(u8_of({10, 255}), (Quantization{1, 0}));  // reaches 0 even so
  EXPECT_EQ(u8_of({-127.6F, 127.4F}).zero_point, 128);
  EXPECT_EQ(u8_of({0, 0}), Quantization());
  EXPECT_TRUE(std::isfinite(u8_of({-3e38F, 3e38F}).scale));
}

TEST(Scale, WeightsPerChannel) {
  const Tensor w = Tensor::of<float>({2, 2, 2}, {127, -127, 0.5F, 1, 0, 0, 254, -2});
  const QuantizedWeights rows = quantize_weights(w, 0), middle = quantize_weights(w, 1);
  EXPECT_EQ(rows.scales.to_doubles(), (std::vector<double>{1, 2}));
  EXPECT_EQ(rows.values.to_ints(), (std::vector<std::int64_t>{127, -127, 0, 1, 0, 0, 127, -1}));
  EXPECT_EQ(middle.scales.to_doubles(), (std::vector<double>{1, 2}));
  EXPECT_EQ(middle.values.to_ints(), (std::vector<std::int64_t>{127, -127, 0, 0, 0, 0, 127, -1}));
  const QuantizedWeights dead = quantize_weights(Tensor::of<float>({2, 1}, {0, 127}), 0);
  EXPECT_EQ(dead.scales.to_doubles(), (std::vector<double>{1, 1}));
  EXPECT_EQ(quantize_weights(Tensor::of<float>({2, 0}, {}), 0).values.dims(), (Dims{2, 0}));
}

TEST(Scale, LeastSquaresIsNoWorse) {
  std::vector<float> w = draw(4096, std::normal_distribution<float>(0, 1));
  w[5] = 30;
  const Tensor weights = Tensor::of<float>({1, 4096}, std::span<const float>(w));
  const auto error = [&](const QuantizedWeights& q) {
    double sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i)
      sum += std::pow(w[i] - q.scales.as<float>()[0] * static_cast<float>(q.values.as<std::int8_t>()[i]), 2);
    return sum;
  };
  EXPECT_LE(error(quantize_weights(weights, 0, {.least_squares = true})), error(quantize_weights(weights, 0)));
}

TEST(Scale, BiasStaysInside32Bits) {
  const float bias[] = {1, 1e6F};
  const auto least = least_scales(bias, 1e-3F);
  const QuantizedWeights q = quantize_weights(Tensor::of<float>({2, 1}, {1e-3F, 1e-3F}), 0, {.least_scales = least});
  const Tensor steps = quantize_bias(Tensor::of<float>({2}, std::span<const float>(bias)), 1e-3F, q.scales);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_LE(std::abs(steps.to_doubles()[i]), 0x1p30 * 1.001);
    EXPECT_NEAR(steps.to_doubles()[i] * 1e-3F * q.scales.as<float>()[i], bias[i], 1e-4 * bias[i]);
  }
}

}  // namespace
}  // namespace modelflow
