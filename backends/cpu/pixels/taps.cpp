// Taps of linear and cubic interpolation, computed in float32 as ONNX Runtime does: the same numbers are read, also
// those that count nothing (0 * inf is NaN in both).
#include "backends/cpu/pixels/taps.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace modelflow::cpu {
namespace {

float place(Coordinates where, std::size_t i, const ResizedAxis& axis) {
  const auto at = static_cast<float>(i), from = static_cast<float>(axis.from), to = static_cast<float>(axis.to);
  switch (where) {
    case Coordinates::asymmetric:
      return at / axis.scale;
    case Coordinates::align_corners:
      return axis.to == 1 ? 0 : at * (from - 1) / (to - 1);
    case Coordinates::pytorch_half_pixel:
      return axis.to > 1 ? (at + 0.5F) / axis.scale - 0.5F : 0;
    default:
      return (at + 0.5F) / axis.scale - 0.5F;
  }
}

void set(Taps& taps, std::size_t t, std::size_t i, std::int64_t index, float weight) {
  taps.index[t * taps.stride + i] = static_cast<std::int32_t>(index);
  taps.weight[t * taps.stride + i] = weight;
}

void linear(Taps& taps, std::size_t i, float at, std::int64_t last) {
  at = std::clamp(at, 0.0F, static_cast<float>(last));
  const std::int64_t first = std::min(static_cast<std::int64_t>(at), last), second = std::min(first + 1, last);
  const bool same = first == second;
  set(taps, 0, i, first, same ? 0.5F : std::abs(at - static_cast<float>(second)));
  set(taps, 1, i, second, same ? 0.5F : std::abs(at - static_cast<float>(first)));
}

void cubic(const Interpolation& how, Taps& taps, std::size_t i, float at, std::int64_t last) {
  const float a = how.cubic_coeff_a, floor = std::floor(at), s = at - floor, r = 1 - s;
  std::array<float, 4> weight = {((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a,
                                 ((a + 2) * s - (a + 3)) * s * s + 1, ((a + 2) * r - (a + 3)) * r * r + 1,
                                 ((a * (r + 1) - 5 * a) * (r + 1) + 8 * a) * (r + 1) - 4 * a};
  const auto first = static_cast<std::int64_t>(floor) - 1;
  if (how.exclude_outside) {
    float sum = 0;
    for (std::int64_t t = 0; t < 4; ++t) {
      float& each = weight[static_cast<std::size_t>(t)];
      if (first + t < 0 || first + t > last) each = 0;
      sum += each;
    }
    for (float& each : weight) each /= sum;
  }
  for (std::size_t t = 0; t < 4; ++t)
    set(taps, t, i, std::clamp<std::int64_t>(first + static_cast<std::int64_t>(t), 0, last), weight[t]);
}

std::size_t stride_of(const ResizedAxis& axis) {
  return (axis.to + 2 * Taps::kPadding - 1) / Taps::kPadding * Taps::kPadding;
}

}  // namespace

std::optional<Coordinates> coordinates_of(std::string_view name) {
  if (name == "half_pixel") return Coordinates::half_pixel;
  if (name == "pytorch_half_pixel") return Coordinates::pytorch_half_pixel;
  if (name == "align_corners") return Coordinates::align_corners;
  if (name == "asymmetric") return Coordinates::asymmetric;
  return {};
}

std::size_t bytes_of_taps(const Interpolation& how, const ResizedAxis& axis) {
  return how.taps() * stride_of(axis) * (sizeof(std::int32_t) + sizeof(float));
}

Taps make_taps(const Interpolation& how, const ResizedAxis& axis, std::byte* memory) {
  Taps taps{how.taps(), stride_of(axis)};
  const std::size_t numbers = taps.count * taps.stride;
  taps.index = reinterpret_cast<std::int32_t*>(memory);
  taps.weight = reinterpret_cast<float*>(taps.index + numbers);
  const auto last = static_cast<std::int64_t>(axis.from) - 1;
  for (std::size_t i = 0; i < taps.stride; ++i) {
    if (i >= axis.to) {
      for (std::size_t t = 0; t < taps.count; ++t) set(taps, t, i, 0, 0);
      continue;
    }
    const float at = place(how.where, i, axis);
    how.cubic ? cubic(how, taps, i, at, last) : linear(taps, i, at, last);
  }
  return taps;
}

}  // namespace modelflow::cpu
