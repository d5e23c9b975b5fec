// One value over all samples: its range, as each observer sees it.
#include "src/precision/observer.h"

#include <algorithm>

#include "src/precision/clipping.h"

namespace modelflow {

void ValueObserver::see(std::span<const float> sample) {
  const Extent extent = extent_of(sample);
  skipped_ += extent.skipped;
  if (extent.finite == 0) return;
  ++samples_;
  seen_ = {std::min(seen_.low, extent.low), std::max(seen_.high, extent.high)};
  sum_low_ += extent.low;
  sum_high_ += extent.high;
  if (how_ != Observer::minmax && how_ != Observer::average) histogram_.add(sample, extent);
}

std::optional<Range> ValueObserver::range_as(Observer how) const {
  if (samples_ == 0 || beyond_bytes()) return std::nullopt;
  const auto n = static_cast<double>(samples_);
  switch (how) {
    case Observer::minmax:
      return seen_;
    case Observer::average:
      return Range{static_cast<float>(std::min(0.0, sum_low_ / n)), static_cast<float>(std::max(0.0, sum_high_ / n))};
    case Observer::percentile:
      return percentile_range(histogram_, seen_, kPercent);
    case Observer::entropy:
      return entropy_range(histogram_, seen_);
    case Observer::automatic:
    case Observer::mse:
      return mse_range(histogram_, seen_);
  }
  return seen_;
}

}  // namespace modelflow
