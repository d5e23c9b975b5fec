// Calibration of small models, error metrics, scales.
#include "src/precision/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "passes/quantize/scale.h"
#include "src/precision/output_errors.h"
#include "src/precision/samples.h"
#include "tests/draw.h"

namespace modelflow {
namespace {

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

TEST(Metric, WholeNumbersAreEqualOrNot) {
  const auto labels = [](std::int64_t moved) {
    return Tensor::of<std::int64_t>({4}, {281 + moved, 282, 283 + moved, 284});
  };
  EXPECT_EQ(drop(error_of(labels(0), labels(0)), Metric::cosine), 0);
  for (const Metric metric : {Metric::cosine, Metric::l2, Metric::top1})
    EXPECT_EQ(drop(error_of(labels(0), labels(4)), metric), 50) << static_cast<int>(metric);
  const Tensor steps = Tensor::of<std::uint8_t>({2}, {100, 101});
  EXPECT_LT(drop(error_of(steps, Tensor::of<std::uint8_t>({2}, {101, 101})), Metric::cosine), 1);
}

TEST(Metric, OneNumberHasNoDirection) {
  const Tensor one = Tensor::of<float>({1, 1}, {100});
  EXPECT_NEAR(drop(error_of(one, Tensor::of<float>({1, 1}, {90})), Metric::cosine), 0.5, 1e-9);
  EXPECT_GT(drop(error_of(one, Tensor::of<float>({1, 1}, {10})), Metric::cosine), 40);
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
  const Tensor rows = Tensor::of<float>({2, 2}, {3, 0, 0, 4});
  EXPECT_EQ(drop(error_of(rows, Tensor::of<float>({2, 2}, {3, 0, NAN, 4})), Metric::top1), 100);
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
  q.drop = NAN;
  q.frontier = {FrontierPoint{}, FrontierPoint{}};
  q.frontier[0].drop = NAN;
  EXPECT_TRUE(nlohmann::json::parse(report.json()).at("quantization").at("drop").is_null());
  EXPECT_NE(report.text().find("cosine drop not judged (allowed: 1 %)"), std::string::npos) << report.text();
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

TEST(Scale, NeighboursOfAChannelAreBounded) {
  const auto worst = [](const std::vector<std::int64_t>& steps, std::size_t taps) {
    const std::size_t inputs = steps.size() / taps;
    const auto at = [&](std::size_t i) { return steps[i % inputs * taps + i / inputs]; };
    std::int64_t most = 0;
    for (std::size_t i = 0; i + 1 < steps.size(); i += 2)
      if (at(i) * at(i + 1) > 0) most = std::max(most, std::abs(at(i) + at(i + 1)));
    return most;
  };
  for (const Dims& dims : {Dims{1, 4096}, Dims{1, 64, 3, 3}, Dims{1, 63, 3, 3}}) {
    const std::vector<float> w =
        draw(static_cast<std::size_t>(element_count(dims)), std::normal_distribution<float>(0, 1));
    const Tensor weights = Tensor::of<float>(dims, std::span<const float>(w));
    const std::size_t taps = dims.size() > 2 ? 9 : 1;
    const QuantizedWeights free = quantize_weights(weights, 0),
                           bounded = quantize_weights(weights, 0, {.bounded_pairs = true});
    EXPECT_GT(worst(free.values.to_ints(), taps), 128);
    EXPECT_LE(worst(bounded.values.to_ints(), taps), 128);
    EXPECT_LT(bounded.scales.to_doubles()[0], 1.5 * free.scales.to_doubles()[0]);  // halving weights would take 2
  }
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
