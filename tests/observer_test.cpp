// Histograms and observers on known distributions.
#include "src/precision/observer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/draw.h"

namespace modelflow {
namespace {

using Samples = std::vector<std::vector<float>>;

constexpr Observer kAll[] = {Observer::minmax, Observer::average, Observer::percentile, Observer::entropy,
                             Observer::mse};

ValueObserver observer_of(Observer how, const Samples& samples) {
  ValueObserver observer(how);
  for (const auto& sample : samples) observer.see(sample);
  return observer;
}

Range observed(Observer how, const Samples& samples) { return observer_of(how, samples).range().value(); }

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
    EXPECT_FALSE(observer_of(how, samples).range()) << "stands for infinity";
    const Range range = observed(how, {samples.begin(), samples.end() - 1});
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

TEST(Observers, NumbersThatStandForInfinityAreNoRange) {
  for (const Observer how : kAll) {
    ValueObserver observer(how);
    observer.see(std::vector<float>{-1e18F, 1});
    EXPECT_TRUE(observer.range());
    observer.see(std::vector<float>{std::numeric_limits<float>::lowest(), 1});
    EXPECT_TRUE(observer.beyond_bytes());
    EXPECT_FALSE(observer.range());
  }
}

}  // namespace
}  // namespace modelflow
