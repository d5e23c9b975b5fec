// The largest absolute value of vectors, where NaN counts as the largest. For files compiled for AVX-512 only (see
// vector.h).
#pragma once

#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// Absolute values as integers: their order is the same, with NaN above infinity, so that a maximum keeps it.
MODELFLOW_INLINE __m512i sizes(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

/// The number that the largest of them stands for.
MODELFLOW_INLINE float largest_of(__m512i sizes) { return __builtin_bit_cast(float, _mm512_reduce_max_epi32(sizes)); }

}  // namespace
}  // namespace modelflow::cpu
