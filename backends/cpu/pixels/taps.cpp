// Lists of the taps of an axis, padded for vectors.
#include "backends/cpu/pixels/taps.h"

namespace modelflow::cpu {
namespace {

std::size_t stride_of(const ResizedAxis& axis) {
  return (static_cast<std::size_t>(axis.to) + 2 * Taps::kPadding - 1) / Taps::kPadding * Taps::kPadding;
}

template <int taps>
void fill(Taps& lists, const Interpolation& how, const ResizedAxis& axis) {
  for (std::size_t i = 0; i < lists.stride; ++i) {
    const auto number = static_cast<std::int64_t>(i);
    const NumberTaps<taps> made = number < axis.to ? taps_of<taps>(how, axis, number) : NumberTaps<taps>{};
    for (std::size_t t = 0; t < taps; ++t) {
      lists.index[t * lists.stride + i] = static_cast<std::int32_t>(made.index[t]);
      lists.weight[t * lists.stride + i] = made.weight[t];
    }
  }
}

}  // namespace

std::size_t bytes_of_taps(const Interpolation& how, const ResizedAxis& axis) {
  return static_cast<std::size_t>(how.taps()) * stride_of(axis) * (sizeof(std::int32_t) + sizeof(float));
}

Taps make_taps(const Interpolation& how, const ResizedAxis& axis, std::byte* memory) {
  Taps taps{static_cast<std::size_t>(how.taps()), stride_of(axis)};
  taps.index = reinterpret_cast<std::int32_t*>(memory);
  taps.weight = reinterpret_cast<float*>(taps.index + taps.count * taps.stride);
  how.cubic ? fill<4>(taps, how, axis) : fill<2>(taps, how, axis);
  return taps;
}

}  // namespace modelflow::cpu
