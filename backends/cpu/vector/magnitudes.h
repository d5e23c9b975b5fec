// The largest magnitude of a row, compiled for each instruction set (see vector.h).
#pragma once

#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

/// NaN where one is: as integers, sizes are in order, and NaN is beyond infinity.
MODELFLOW_INLINE float largest_size(const float* a, std::size_t n) {
  Ints most[4] = {};
  vectors_by_four(n, [&](std::size_t i, auto part, std::size_t v) {
    const Ints size = bits(abs(load(a + i, part)));
    most[v] = most[v] > size ? most[v] : size;
  });
  for (int v = 1; v < 4; ++v) most[0] = most[0] > most[v] ? most[0] : most[v];
  std::int32_t largest = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) largest = largest > most[0][lane] ? largest : most[0][lane];
  return __builtin_bit_cast(float, largest);
}

}  // namespace
}  // namespace modelflow::cpu
