// What calibration keeps of one value.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "modelflow/modelflow.h"
#include "src/precision/histogram.h"

namespace modelflow {

/// What calibration keeps of one value of the graph: one pass over each sample, memory that does not grow.
///
///     ValueObserver observer(Observer::percentile);
///     for (...) observer.see(tensor.as<float>());
///     std::optional<Range> range = observer.range();
///
/// minmax and average look at every element; the others as well, but above Histogram::kMostElements elements per sample
/// they count only so many of them.
class ValueObserver {
 public:
  /// What Observer::percentile keeps at either end.
  static constexpr double kPercent = 99.99;
  /// What is larger stands for infinity (the lowest number as a border or a mask) and is no data: a product of two such
  /// numbers is beyond float32, and steps that reach them leave 0 of all others.
  static constexpr float kLargest = 0x1p64F;

  explicit ValueObserver(Observer how) : how_(how) {}
  void see(std::span<const float> sample);
  /// Always reaches 0, which stands for padding and must be exact; none when no finite element was seen, or one beyond
  /// kLargest.
  std::optional<Range> range() const { return range_as(how_); }
  /// The range by another method than that of this observer, which has kept enough for it: `automatic` keeps
  /// everything.
  std::optional<Range> range_as(Observer how) const;
  bool beyond_bytes() const { return std::max(seen_.high, -seen_.low) > kLargest; }
  /// NaN and infinite elements, which were left out.
  std::size_t skipped() const { return skipped_; }

 private:
  Observer how_;
  std::size_t samples_ = 0, skipped_ = 0;  ///< samples with a finite element
  Range seen_;                             ///< of all samples, 0 included
  double sum_low_ = 0, sum_high_ = 0;      ///< of the samples' extremes
  Histogram histogram_;
};

}  // namespace modelflow
