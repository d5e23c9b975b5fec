// Heads mixed over vectors. For files named so, see vector.h.
#pragma once

#include "backends/cpu/attention/talking.h"
#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

/// `Heads` of them from `first` on, for `Wide` vectors at `j`.
template <int Heads, int Wide, class Part>
MODELFLOW_INLINE void mix_part(const HeadMixing& m, std::size_t first, std::size_t j, Part part) {
  Floats sums[Heads][Wide];
#pragma GCC unroll 4
  for (int i = 0; i < Heads; ++i) {
    const Floats start = all(m.bias ? m.bias[first + static_cast<std::size_t>(i)] : 0.0f);
#pragma GCC unroll 2
    for (int v = 0; v < Wide; ++v) sums[i][v] = start;
  }
  const float *x = m.from + j, *weights = m.weights + first * m.heads;
  for (std::size_t h = 0; h < m.heads; ++h, x += m.plane, ++weights) {
    Floats numbers[Wide];
#pragma GCC unroll 2
    for (int v = 0; v < Wide; ++v) numbers[v] = load(x + kLanes * v, part);
#pragma GCC unroll 4
    for (int i = 0; i < Heads; ++i) {
      const Floats weight = all(weights[static_cast<std::size_t>(i) * m.heads]);
#pragma GCC unroll 2
      for (int v = 0; v < Wide; ++v) sums[i][v] += numbers[v] * weight;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Heads; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < Wide; ++v)
      store(m.to + (first + static_cast<std::size_t>(i)) * m.plane + j + kLanes * v, sums[i][v], part);
  }
}

template <int Heads>
MODELFLOW_FLAT void mix_some(const HeadMixing& m, std::size_t first) {
  std::size_t j = 0;
  for (; j + 2 * kLanes <= m.n; j += 2 * kLanes) mix_part<Heads, 2>(m, first, j, Whole{});
  vectors(m.n - j, [&](std::size_t i, auto part) { mix_part<Heads, 1>(m, first, j + i, part); });
}

void mix_heads(const HeadMixing& m) {
  std::size_t first = 0;
  for (; first + 4 <= m.heads; first += 4) mix_some<4>(m, first);
  for (; first < m.heads; ++first) mix_some<1>(m, first);
}

}  // namespace
}  // namespace modelflow::cpu
