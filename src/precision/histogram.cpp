// Histograms of tensors, vectorised by the compiler.
#include "src/precision/histogram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace modelflow {
namespace {

// Loops over a constant number of lanes are what compilers vectorise without being asked for a CPU.
constexpr std::size_t kLanes = 8, kRun = 64;

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool is_finite(float value) { return (bits_of(value) & 0x7f800000U) != 0x7f800000U; }

Extent extent_one_by_one(std::span<const float> values) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Extent extent{.low = kInfinity, .high = -kInfinity};
  for (const float value : values) {
    if (!is_finite(value)) {
      ++extent.skipped;
      continue;
    }
    ++extent.finite;
    extent.low = std::min(extent.low, value);
    extent.high = std::max(extent.high, value);
  }
  return extent;
}

/// Where run number `run` of `runs` starts: somewhere in its share of the tensor.
std::size_t run_start(std::size_t run, std::size_t runs, std::size_t elements) {
  const std::size_t begin = run * elements / runs, end = (run + 1) * elements / runs;
  const std::uint64_t mixed = (run + 1) * 0x9E3779B97F4A7C15ULL;  // the golden ratio: spreads multiples evenly
  return begin + static_cast<std::size_t>((mixed >> 32) % (end - begin - kRun + 1));
}

std::int64_t grid(double value, double width) { return static_cast<std::int64_t>(std::floor(value / width)); }

std::int64_t floor_half(std::int64_t k) { return k >= 0 ? k / 2 : -((1 - k) / 2); }

}  // namespace

Extent extent_of(std::span<const float> values) {
  std::array<float, kLanes> low, high;
  std::array<std::uint32_t, kLanes> odd{};
  low.fill(std::numeric_limits<float>::max());
  high.fill(std::numeric_limits<float>::lowest());
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    const float* v = values.data() + i;
    for (std::size_t j = 0; j < kLanes; ++j) {
      low[j] = v[j] < low[j] ? v[j] : low[j];
      high[j] = v[j] > high[j] ? v[j] : high[j];
      // 0 * v is NaN for NaN and infinities and a zero for everything else.
      odd[j] |= bits_of(0.0F * v[j]) & 0x7fffffffU;
    }
  }
  if (std::any_of(odd.begin(), odd.end(), [](std::uint32_t bits) { return bits != 0; }))
    return extent_one_by_one(values);
  Extent extent = extent_one_by_one(values.subspan(whole));
  if (whole > 0) {
    extent.low = std::min(extent.low, *std::min_element(low.begin(), low.end()));
    extent.high = std::max(extent.high, *std::max_element(high.begin(), high.end()));
    extent.finite += whole;
  }
  return extent;
}

/// Counters of one call: four sets, since neighbours are often equal and a counter takes its time to be written.
struct Histogram::Counters {
  std::array<std::array<std::uint32_t, kBins>, 4> sets{};
  float scale;
  std::int32_t first;

  std::int32_t bin(float value) const {
    const float scaled = value * scale;  // exact: a power of two
    const auto toward_zero = static_cast<std::int32_t>(scaled);
    return toward_zero - (scaled < static_cast<float>(toward_zero) ? 1 : 0) - first;
  }
  void run(const float* values) {
    std::array<std::int32_t, kRun> bins;
    for (std::size_t j = 0; j < kRun; ++j) bins[j] = bin(values[j]);
    for (std::size_t j = 0; j < kRun; j += 4)
      for (std::size_t set = 0; set < 4; ++set) ++sets[set][static_cast<std::size_t>(bins[j + set])];
  }
  void one_by_one(std::span<const float> values) {
    for (const float value : values)
      if (is_finite(value)) ++sets[0][static_cast<std::size_t>(bin(value))];
  }
};

void Histogram::add(std::span<const float> values, const Extent& extent) {
  if (extent.finite == 0) return;
  cover(extent.low, extent.high);
  Counters counters{.sets = {}, .scale = static_cast<float>(1 / width_), .first = static_cast<std::int32_t>(first_)};
  const bool sampled = values.size() > kMostElements;
  const std::size_t runs = (sampled ? kMostElements : values.size()) / kRun;
  for (std::size_t run = 0; run < runs; ++run) {
    const std::size_t start = sampled ? run_start(run, runs, values.size()) : run * kRun;
    if (extent.skipped > 0)
      counters.one_by_one(values.subspan(start, kRun));
    else
      counters.run(values.data() + start);
  }
  if (!sampled) counters.one_by_one(values.subspan(runs * kRun));
  for (const auto& set : counters.sets)
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      counts_[i] += set[i];
      total_ += set[i];
    }
}

void Histogram::cover(float low, float high) {
  const double bottom = std::min<double>(low, 0), top = std::max<double>(high, 0);
  if (counts_.empty()) {
    width_ = std::numeric_limits<float>::min();
    first_ = 0;
    counts_.assign(1, 0);
  }
  const auto last = [&] { return first_ + static_cast<std::int64_t>(counts_.size()) - 1; };
  const auto fits = [&] {
    const double from = std::min(static_cast<double>(first_), std::floor(bottom / width_));
    const double to = std::max(static_cast<double>(last()), std::floor(top / width_));
    return to - from < static_cast<double>(kBins);
  };
  while (!fits()) merge_pairs();
  const std::int64_t from = std::min(first_, grid(bottom, width_)), to = std::max(last(), grid(top, width_));
  counts_.insert(counts_.begin(), static_cast<std::size_t>(first_ - from), 0);
  first_ = from;
  counts_.resize(static_cast<std::size_t>(to - from + 1), 0);
}

void Histogram::merge_pairs() {
  const std::int64_t first = floor_half(first_);
  const std::int64_t last = floor_half(first_ + static_cast<std::int64_t>(counts_.size()) - 1);
  std::vector<std::uint64_t> merged(static_cast<std::size_t>(last - first + 1), 0);
  for (std::size_t i = 0; i < counts_.size(); ++i)
    merged[static_cast<std::size_t>(floor_half(first_ + static_cast<std::int64_t>(i)) - first)] += counts_[i];
  counts_ = std::move(merged);
  first_ = first;
  width_ *= 2;
}

}  // namespace modelflow
