// Transposition of blocks of 16 x 16 floats in registers. For files compiled for AVX-512 only (see vector.h).
#pragma once

#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

/// 16 rows of 16 floats; the classic four rounds of exchanging halves.
MODELFLOW_INLINE void transpose16(__m512 (&r)[16]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 2]);
    const __m512d c = _mm512_castps_pd(t[4 * i + 1]), d = _mm512_castps_pd(t[4 * i + 3]);
    r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
    r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
    r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

/// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < columns, of which there are up to 16 each. All lanes of
/// `written` are stored, with 0 beyond the rows.
MODELFLOW_INLINE void transpose_block(const float* x, std::size_t x_step, float* y, std::size_t y_step,
                                      std::size_t rows, std::size_t columns, __mmask16 written) {
  __m512 r[16];
  const __mmask16 read = first_lanes(columns);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i)
    r[i] = i < rows ? _mm512_maskz_loadu_ps(read, x + i * x_step) : _mm512_setzero_ps();
  transpose16(r);
#pragma GCC unroll 16
  for (std::size_t j = 0; j < 16; ++j)
    if (j < columns) _mm512_mask_storeu_ps(y + j * y_step, written, r[j]);
}

}  // namespace
}  // namespace modelflow::cpu
