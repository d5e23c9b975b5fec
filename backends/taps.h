// Which numbers of an axis a number of a resized one is made of, for CPUs and GPUs alike: in float32 as ONNX Runtime
// computes it, so that the same numbers are read, also those that count nothing (0 * inf is NaN in both).
#pragma once

#include <cstdint>

namespace modelflow {

/// How ONNX's Resize finds the place of a number of the result.
enum class Coordinates : std::uint32_t { half_pixel, pytorch_half_pixel, align_corners, asymmetric };

struct Interpolation {
  bool cubic = false;
  Coordinates where = Coordinates::half_pixel;
  float cubic_coeff_a = -0.75F;
  bool exclude_outside = false;

  constexpr int taps() const { return cubic ? 4 : 2; }
};

/// One axis: `from` numbers (1 at least) become `to`.
struct ResizedAxis {
  std::int64_t from = 1, to = 1;
  float scale = 1;
};

/// Number `i` of the result: the sum over t of weight[t] * x[index[t]].
template <int taps>
struct NumberTaps {
  std::int64_t index[taps];
  float weight[taps];
};

constexpr float place_of(Coordinates where, std::int64_t i, const ResizedAxis& axis) {
  const auto at = static_cast<float>(i), from = static_cast<float>(axis.from), to = static_cast<float>(axis.to);
  switch (where) {
    case Coordinates::asymmetric:
      return at / axis.scale;
    case Coordinates::align_corners:
      return axis.to == 1 ? 0.0F : at * (from - 1) / (to - 1);
    case Coordinates::pytorch_half_pixel:
      return axis.to > 1 ? (at + 0.5F) / axis.scale - 0.5F : 0.0F;
    default:
      return (at + 0.5F) / axis.scale - 0.5F;
  }
}

constexpr NumberTaps<2> linear_taps(const Interpolation& how, const ResizedAxis& axis, std::int64_t i) {
  const std::int64_t last = axis.from - 1;
  const float place = place_of(how.where, i, axis), end = static_cast<float>(last);
  const float at = place < 0 ? 0.0F : place < end ? place : end;
  const auto whole = static_cast<std::int64_t>(at);
  const std::int64_t first = whole < last ? whole : last, second = first < last ? first + 1 : last;
  if (first == second) return {{first, second}, {0.5F, 0.5F}};
  const float before = at - static_cast<float>(first), behind = at - static_cast<float>(second);
  return {{first, second}, {behind < 0 ? -behind : behind, before < 0 ? -before : before}};
}

constexpr NumberTaps<4> cubic_taps(const Interpolation& how, const ResizedAxis& axis, std::int64_t i) {
  const std::int64_t last = axis.from - 1;
  const float at = place_of(how.where, i, axis), a = how.cubic_coeff_a;
  const auto towards_zero = static_cast<std::int64_t>(at);
  const std::int64_t floor = static_cast<float>(towards_zero) > at ? towards_zero - 1 : towards_zero;
  const float s = at - static_cast<float>(floor), r = 1 - s;
  NumberTaps<4> taps = {
      {},
      {((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a, ((a + 2) * s - (a + 3)) * s * s + 1,
       ((a + 2) * r - (a + 3)) * r * r + 1, ((a * (r + 1) - 5 * a) * (r + 1) + 8 * a) * (r + 1) - 4 * a}};
  float sum = 0;
  for (int t = 0; t < 4; ++t) {
    const std::int64_t index = floor - 1 + t;
    if (how.exclude_outside && (index < 0 || index > last)) taps.weight[t] = 0;
    taps.index[t] = index < 0 ? 0 : index < last ? index : last;
    sum += taps.weight[t];
  }
  if (how.exclude_outside)
    for (int t = 0; t < 4; ++t) taps.weight[t] /= sum;
  return taps;
}

template <int taps>
constexpr NumberTaps<taps> taps_of(const Interpolation& how, const ResizedAxis& axis, std::int64_t i) {
  if constexpr (taps == 4)
    return cubic_taps(how, axis, i);
  else
    return linear_taps(how, axis, i);
}

}  // namespace modelflow
