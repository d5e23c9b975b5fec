// Ranges by percentile, entropy and squared error.
#include "src/precision/clipping.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace modelflow {
namespace {

constexpr std::size_t kLevels = 256;

/// How many bins from the front of `counts` the first `tail` elements fill; the last one in part.
template <class Counts>
double depth_of_tail(const Counts& counts, double tail) {
  double passed = 0, depth = 0;
  for (const std::uint64_t count : counts) {
    const auto here = static_cast<double>(count);
    if (passed + here > tail) return depth + (tail - passed) / here;
    passed += here;
    depth += 1;
  }
  return depth;
}

/// The divergence of the histogram from the bins [begin, end) shown in 256 levels, everything outside clipped to them.
double divergence(const Histogram& histogram, std::size_t begin, std::size_t end) {
  const auto counts = histogram.counts();
  const auto total = static_cast<double>(histogram.total());
  double inside = 0, below = 0, above = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    (i < begin ? below : i < end ? inside : above) += static_cast<double>(counts[i]);
  if (inside == 0) return INFINITY;
  const std::size_t bins = end - begin;
  std::vector<double> mass(kLevels, 0), filled(kLevels, 0);
  const auto level = [&](std::size_t i) { return (i - begin) * kLevels / std::max(bins, kLevels); };
  for (std::size_t i = begin; i < end; ++i) {
    mass[level(i)] += static_cast<double>(counts[i]);
    filled[level(i)] += counts[i] > 0 ? 1 : 0;
  }
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double p = static_cast<double>(counts[i]) + (i == begin ? below : 0) + (i + 1 == end ? above : 0);
    if (p == 0) continue;
    const double q = counts[i] > 0 ? mass[level(i)] / filled[level(i)] : 0;
    sum += p / total * std::log((p / total) / std::max(q / inside, 0.5 / total));
  }
  return sum;
}

/// Sums over bins, to know the cost of clipping at any place at once.
struct Moments {
  std::vector<double> count{0}, sum{0}, squares{0};  ///< of all bins before number i

  explicit Moments(const Histogram& histogram) {
    for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
      const auto n = static_cast<double>(histogram.counts()[i]);
      const double x = histogram.center(i);
      count.push_back(count.back() + n);
      sum.push_back(sum.back() + n * x);
      squares.push_back(squares.back() + n * x * x);
    }
  }
  /// Sum of (x - to)^2 over the bins [begin, end).
  double distance(std::size_t begin, std::size_t end, double to) const {
    return squares[end] - squares[begin] - 2 * to * (sum[end] - sum[begin]) + to * to * (count[end] - count[begin]);
  }
};

/// The first bin whose middle lies beyond `value`.
std::size_t first_beyond(const Histogram& histogram, double value) {
  const double bin = std::ceil((value - histogram.edge(0)) / histogram.width() - 0.5);
  return static_cast<std::size_t>(std::clamp(bin, 0.0, static_cast<double>(histogram.counts().size())));
}

double squared_error(const Histogram& histogram, const Moments& moments, Range range) {
  const std::size_t begin = first_beyond(histogram, range.low), end = first_beyond(histogram, range.high);
  const std::size_t all = histogram.counts().size();
  // What lies beside 0 is shown as 0, which is exact: the many zeros behind a Relu must not ask for finer steps.
  const std::size_t zero = first_beyond(histogram, 0);
  const double beside = moments.count[std::min(zero + 1, all)] - moments.count[zero > 0 ? zero - 1 : 0];
  const double step = (static_cast<double>(range.high) - range.low) / (kLevels - 1);
  const double inside = std::max(0.0, moments.count[end] - moments.count[std::min(begin, end)] - beside);
  return inside * step * step / 12 + moments.distance(0, begin, range.low) + moments.distance(end, all, range.high);
}

}  // namespace

Range percentile_range(const Histogram& histogram, Range seen, double percent) {
  const double tail = static_cast<double>(histogram.total()) * (100 - percent) / 100;
  if (tail < 1) return seen;
  const auto counts = histogram.counts();
  const std::vector<std::uint64_t> backward(counts.rbegin(), counts.rend());
  const double low = histogram.edge(0) + depth_of_tail(counts, tail) * histogram.width();
  const double high = histogram.edge(counts.size()) - depth_of_tail(backward, tail) * histogram.width();
  return {std::clamp(static_cast<float>(low), seen.low, 0.0F), std::clamp(static_cast<float>(high), 0.0F, seen.high)};
}

Range entropy_range(const Histogram& histogram, Range seen) {
  constexpr int kSteps = 64;
  if (histogram.total() == 0) return seen;
  const std::size_t bins = histogram.counts().size(), zero = first_beyond(histogram, 0);
  const auto share = [](std::size_t whole, int step) { return (whole * static_cast<std::size_t>(step)) / kSteps; };
  const auto best = [&](const auto& cost) {
    int chosen = kSteps;
    double least = cost(kSteps);
    for (int step = kSteps - 1; step > 0; --step)
      if (const double here = cost(step); here < least) {
        least = here;
        chosen = step;
      }
    return chosen;
  };
  std::size_t begin = 0, end = bins;
  if (bins > zero)
    end = zero + share(bins - zero, best([&](int step) {
                         return divergence(histogram, 0, zero + std::max<std::size_t>(1, share(bins - zero, step)));
                       }));
  end = std::max(end, zero + 1);
  if (zero > 0)
    begin = zero - share(zero, best([&](int step) { return divergence(histogram, zero - share(zero, step), end); }));
  return {std::clamp(static_cast<float>(histogram.edge(begin)), seen.low, 0.0F),
          std::clamp(static_cast<float>(histogram.edge(end)), 0.0F, seen.high)};
}

Range mse_range(const Histogram& histogram, Range seen) {
  constexpr int kSteps = 128;
  const Moments moments(histogram);
  Range best = seen;
  double least = squared_error(histogram, moments, seen);
  for (int h = seen.high > 0 ? 1 : kSteps; h <= kSteps; ++h)
    for (int l = seen.low < 0 ? 1 : kSteps; l <= kSteps; ++l) {
      const Range range{seen.low * static_cast<float>(l) / kSteps, seen.high * static_cast<float>(h) / kSteps};
      const double error = squared_error(histogram, moments, range);
      if (error < least) {
        least = error;
        best = range;
      }
    }
  return best;
}

}  // namespace modelflow
