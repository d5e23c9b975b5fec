// Resampling as a convolution: of `from` samples (over the common divisor) `to` new ones are made, each by a filter.
#include "src/front_end/resampled.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace modelflow {
namespace {

constexpr double kCrossings = 6, kRolloff = 0.99;

/// A sinc that is cut to `kCrossings` by a squared cosine.
double filter_at(double t) {
  t = std::clamp(t, -kCrossings, kCrossings);
  const double window = std::pow(std::cos(t * std::numbers::pi / kCrossings / 2), 2);
  return t == 0 ? 1 : std::sin(std::numbers::pi * t) / (std::numbers::pi * t) * window;
}

}  // namespace

Value* resampled(const Draft& d, Value* samples, int from, int to) {
  const int common = std::gcd(from, to);
  from /= common;
  to /= common;
  const double cutoff = std::min(from, to) * kRolloff;
  const int width = static_cast<int>(std::ceil(kCrossings * from / cutoff));
  std::vector<float> filters;
  for (int phase = 0; phase < to; ++phase)
    for (int i = -width; i < width + from; ++i) {
      const double t = (static_cast<double>(i) / from - static_cast<double>(phase) / to) * cutoff;
      filters.push_back(static_cast<float>(filter_at(t) * cutoff / from));
    }
  const std::int64_t taps = 2 * width + from;
  Value& weights =
      d.graph().add_constant(Tensor::of<float>({to, 1, taps}, std::span<const float>(filters)), "resampling");
  Value* length = d.op("Shape", {samples}, {{"start", Attr(std::int64_t{1})}});
  Value* x = d.op("Pad", {samples, &d.ints({0, width, 0, width + from})});
  x = d.op("Conv", {d.op("Unsqueeze", {x, &d.ints({1})}), &weights},
           {{"strides", Attr(Ints{from})}, {"kernel_shape", Attr(Ints{taps})}});
  x = d.op("Transpose", {x}, {{"perm", Attr(Ints{0, 2, 1})}});
  x = d.op("Reshape", {x, &d.ints({0, -1})});
  Value* whole = d.op("Add", {d.op("Mul", {length, &d.ints({to})}), &d.ints({from - 1})});
  return d.op("Slice", {x, &d.ints({0}), d.op("Div", {whole, &d.ints({from})}), &d.ints({1})});
}

}  // namespace modelflow
