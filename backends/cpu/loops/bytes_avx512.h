// Floats to bytes and back, 64 at a time. For files named *_avx512.cpp only (see vector.h).
#pragma once

#include <immintrin.h>

#include "backends/cpu/loops/bytes.h"
#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// The lanes of 64 bytes or 32 numbers that hold the first n.
MODELFLOW_INLINE __mmask64 mask64(std::size_t n) { return n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1; }
MODELFLOW_INLINE __mmask32 mask32(std::size_t n) { return n >= 32 ? ~__mmask32{0} : (__mmask32{1} << n) - 1; }

/// Integers as 16-bit numbers plus `zero`, saturated to bytes, in order.
MODELFLOW_INLINE __m512i packed(__m512i a, __m512i b, __m512i c, __m512i d, __m512i zero) {
  const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero);
  const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(c, d), zero);
  // Each lane of 128 bits holds four numbers of a, of b, of c and of d.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
}

/// 64 floats to bytes. What is too large for an integer is cut before it becomes the smallest one; NaN becomes that,
/// and so 0, as in ONNX Runtime's QuantizeLinear.
struct Quantizer {
  __m512 inverse, most = _mm512_set1_ps(1024);
  __m512i zero;

  explicit Quantizer(const Quantization& q)
      : inverse(_mm512_set1_ps(1 / q.scale)), zero(_mm512_set1_epi16(static_cast<short>(q.zero))) {}

  MODELFLOW_INLINE __m512i whole(__m512 x) const {
    return _mm512_cvtps_epi32(_mm512_min_ps(most, _mm512_mul_ps(x, inverse)));
  }
  MODELFLOW_INLINE __m512i operator()(const float* x) const {
    return packed(whole(_mm512_loadu_ps(x)), whole(_mm512_loadu_ps(x + 16)), whole(_mm512_loadu_ps(x + 32)),
                  whole(_mm512_loadu_ps(x + 48)), zero);
  }
  /// Reads the first n < 64.
  MODELFLOW_INLINE __m512i operator()(const float* x, std::size_t n) const {
    const auto part = [&](std::size_t i) {
      return n > i ? whole(_mm512_maskz_loadu_ps(first_lanes(n - i), x + i)) : _mm512_setzero_si512();
    };
    return packed(part(0), part(16), part(32), part(48), zero);
  }
};

/// 16 bytes to floats.
struct Dequantizer {
  __m512 scale;
  __m512i zero;

  explicit Dequantizer(const Quantization& q) : scale(_mm512_set1_ps(q.scale)), zero(_mm512_set1_epi32(q.zero)) {}

  MODELFLOW_INLINE __m512 operator()(__m128i x) const {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_cvtepu8_epi32(x), zero)), scale);
  }
  /// The first n <= 64 of them to y.
  MODELFLOW_INLINE void operator()(__m512i x, std::size_t n, float* y) const {
    const auto store = [&](__m128i part, std::size_t i) {
      if (n >= i + 16)
        _mm512_storeu_ps(y + i, (*this)(part));
      else if (n > i)
        _mm512_mask_storeu_ps(y + i, first_lanes(n - i), (*this)(part));
    };
    store(_mm512_castsi512_si128(x), 0);
    store(_mm512_extracti32x4_epi32(x, 1), 16);
    store(_mm512_extracti32x4_epi32(x, 2), 32);
    store(_mm512_extracti32x4_epi32(x, 3), 48);
  }
};

}  // namespace
}  // namespace modelflow::cpu
