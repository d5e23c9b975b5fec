// Histograms that grow with the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace modelflow {

/// What one pass over a tensor finds without counting into bins.
struct Extent {
  float low = 0, high = 0;  ///< of the finite elements; meaningless when there is none
  std::size_t finite = 0;   ///< elements that are neither NaN nor infinite
  std::size_t skipped = 0;  ///< elements that are
};
Extent extent_of(std::span<const float> values);

/// Counts over bins of equal width that grow with the data in bounded memory. Bins lie on the grid k * width, width a
/// power of two, and always reach 0; when a value falls outside, neighbours are merged until it fits. Because the grid
/// of a width holds that of half the width, the result is the same in whatever order values arrive.
class Histogram {
 public:
  static constexpr std::size_t kBins = 2048;
  /// Tensors with more elements are sampled: runs of neighbours, evenly spread at positions that are irregular (so that
  /// no channel is passed over) but the same for every tensor of that size.
  static constexpr std::size_t kMostElements = std::size_t{1} << 16;

  /// Counts `values`, all of which lie in `extent`; NaN and infinities are left out.
  void add(std::span<const float> values, const Extent& extent);

  /// Bins from the first to the last that may hold something; bin i is [edge(i), edge(i + 1)).
  std::span<const std::uint64_t> counts() const { return counts_; }
  double width() const { return width_; }
  double edge(std::size_t bin) const { return (static_cast<double>(first_) + static_cast<double>(bin)) * width_; }
  double center(std::size_t bin) const { return edge(bin) + width_ / 2; }
  std::uint64_t total() const { return total_; }

 private:
  struct Counters;
  void cover(float low, float high);
  void merge_pairs();

  double width_ = 0;        ///< 0: nothing seen
  std::int64_t first_ = 0;  ///< the grid number of counts_[0]
  std::vector<std::uint64_t> counts_;
  std::uint64_t total_ = 0;
};

}  // namespace modelflow
