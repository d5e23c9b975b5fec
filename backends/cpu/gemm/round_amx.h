// Rounds rows to bfloat16 as tiles read them. For files named *_amx.cpp only; everything has internal linkage.
#pragma once

#include <cstddef>

#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// Floats to bfloat16. Writes 2 * count bytes.
MODELFLOW_INLINE void round_numbers(const float* from, std::size_t count, std::byte* to) {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + 16), _mm512_loadu_ps(from + i));
    _mm512_storeu_si512(to + 2 * i, reinterpret_cast<__m512i>(both));
  }
  for (; i < count; i += 16) {
    const __mmask16 lanes = first_lanes(count - i);
    const __m256bh some = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, from + i));
    _mm256_mask_storeu_epi16(to + 2 * i, lanes, reinterpret_cast<__m256i>(some));
  }
}

/// A row as tiles read it: numbers of either type in bfloat16, zeros behind them up to `whole` bytes.
template <class T>
MODELFLOW_INLINE void tile_row_of(const T* from, std::size_t count, std::size_t whole, std::byte* to) {
  if constexpr (sizeof(T) == 2)
    __builtin_memcpy(to, from, 2 * count);
  else
    round_numbers(from, count, to);
  if (whole > 2 * count) __builtin_memset(to + 2 * count, 0, whole - 2 * count);
}

}  // namespace
}  // namespace modelflow::cpu
