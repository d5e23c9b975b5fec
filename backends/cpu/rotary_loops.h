#pragma once

// Rotary embedding in vectors of the compiler's own kind. Internal linkage on purpose: each including file is compiled
// for another instruction set, and the linker must not mix them.

#include <cstring>

#include "backends/cpu/rotary.h"

namespace modelflow::cpu {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kLanes = 16;
#elif defined(__AVX2__)
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

inline __attribute__((always_inline)) Lanes load(const float* from) {
  Lanes x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
inline __attribute__((always_inline)) void store(float* to, Lanes x) { std::memcpy(to, &x, sizeof x); }

/// Both elements of a pair are read before either is written: y may be x.
template <bool Wide>
void turn_halves(const RotaryRow& row) {
  const std::size_t n = row.pairs;
  const float *a = row.x, *b = row.x + n, *cos = row.cos, *sin = row.sin;
  const float *cos_b = Wide ? cos + n : cos, *sin_b = Wide ? sin + n : sin;
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Lanes first = load(a + i), second = load(b + i);
    store(row.y + i, first * load(cos + i) - second * load(sin + i));
    store(row.y + n + i, second * load(cos_b + i) + first * load(sin_b + i));
  }
  for (; i < n; ++i) {
    const float first = a[i], second = b[i];
    row.y[i] = first * cos[i] - second * sin[i];
    row.y[n + i] = second * cos_b[i] + first * sin_b[i];
  }
}

template <bool Wide>
void turn_neighbours(const RotaryRow& row) {
  for (std::size_t i = 0; i < row.pairs; ++i) {
    const float first = row.x[2 * i], second = row.x[2 * i + 1];
    const std::size_t at = Wide ? 2 * i : i, next = Wide ? at + 1 : at;
    row.y[2 * i] = first * row.cos[at] - second * row.sin[at];
    row.y[2 * i + 1] = second * row.cos[next] + first * row.sin[next];
  }
}

constexpr RotaryLoops kLoops = {turn_halves<false>, turn_halves<true>, turn_neighbours<false>, turn_neighbours<true>};

}  // namespace
}  // namespace modelflow::cpu
