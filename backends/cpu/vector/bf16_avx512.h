// Widening and rounding of bfloat16 in AVX-512 registers. For files compiled for AVX-512 only (see vector.h).
#pragma once

#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// 16 bfloat16 numbers as floats.
MODELFLOW_INLINE __m512 widen(__m256i numbers) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

/// Rounded to nearest, ties to even; NaN stays one.
MODELFLOW_INLINE __m256i narrow(__m512 x) {
#ifdef __AVX512BF16__  // takes numbers below the normal range for 0, as products of bfloat16 do
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
#else
  const __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i chosen = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16));
#endif
}

}  // namespace
}  // namespace modelflow::cpu
