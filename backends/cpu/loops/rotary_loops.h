// The loops of rotary.h, written over vectors (see vector.h).
#pragma once

#include "backends/cpu/loops/rotary.h"
#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

/// Both elements of a pair are read before either is written: y may be x.
template <bool Wide>
MODELFLOW_FLAT void turn_halves(const RotaryRow& row) {
  const std::size_t n = row.pairs;
  const float *a = row.x, *b = row.x + n, *cos = row.cos, *sin = row.sin;
  const float *cos_b = Wide ? cos + n : cos, *sin_b = Wide ? sin + n : sin;
  vectors(n, [&](std::size_t i, auto part) {
    const Floats first = load(a + i, part), second = load(b + i, part);
    store(row.y + i, first * load(cos + i, part) - second * load(sin + i, part), part);
    store(row.y + n + i, second * load(cos_b + i, part) + first * load(sin_b + i, part), part);
  });
}

using EachLane = std::make_index_sequence<kLanes>;

/// Of two vectors in a row, what stands in even places (`first` is 0) or in odd ones (1).
template <std::size_t first, std::size_t... lane>
MODELFLOW_INLINE Floats every_other(const float* from, std::index_sequence<lane...>) {
  return __builtin_shufflevector(load(from), load(from + kLanes), (2 * lane + first)...);
}
/// The inverse.
template <std::size_t... lane>
MODELFLOW_INLINE void store_in_turns(float* to, Floats even, Floats odd, std::index_sequence<lane...>) {
  store(to, __builtin_shufflevector(even, odd, (lane / 2 + lane % 2 * kLanes)...));
  store(to + kLanes, __builtin_shufflevector(even, odd, (lane / 2 + kLanes / 2 + lane % 2 * kLanes)...));
}

/// One angle for each pair.
MODELFLOW_FLAT void turn_neighbours(const RotaryRow& row) {
  constexpr EachLane kEach;
  std::size_t i = 0;
  for (; i + kLanes <= row.pairs; i += kLanes) {
    const Floats first = every_other<0>(row.x + 2 * i, kEach), second = every_other<1>(row.x + 2 * i, kEach);
    const Floats cos = load(row.cos + i), sin = load(row.sin + i);
    store_in_turns(row.y + 2 * i, first * cos - second * sin, second * cos + first * sin, kEach);
  }
  for (; i < row.pairs; ++i) {
    const float first = row.x[2 * i], second = row.x[2 * i + 1];
    row.y[2 * i] = first * row.cos[i] - second * row.sin[i];
    row.y[2 * i + 1] = second * row.cos[i] + first * row.sin[i];
  }
}

/// The other one of each pair, below 0 where it is the second.
template <std::size_t... lane>
MODELFLOW_INLINE Floats others(Floats x, std::index_sequence<lane...>) {
  constexpr Ints kSigns = {(lane % 2 == 0 ? static_cast<std::int32_t>(0x80000000) : 0)...};
  return from_bits(bits(__builtin_shufflevector(x, x, (lane ^ 1)...)) ^ kSigns);
}

MODELFLOW_FLAT void turn_neighbours_wide(const RotaryRow& row) {
  vectors(2 * row.pairs, [&](std::size_t i, auto part) {
    const Floats x = load(row.x + i, part);
    store(row.y + i, x * load(row.cos + i, part) + others(x, EachLane()) * load(row.sin + i, part), part);
  });
}

}  // namespace
}  // namespace modelflow::cpu
