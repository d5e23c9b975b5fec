// Transposition of blocks of floats in registers: 16 x 16 on AVX-512, 8 x 8 on AVX2, else number by number (see
// vector.h).
#pragma once

#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

#if defined(__AVX512F__)

/// 16 rows of 16 floats; the classic four rounds of exchanging halves.
MODELFLOW_INLINE void transpose_registers(Floats (&r)[16]) {
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

#elif defined(__AVX2__)

/// 8 rows of 8 floats, in three rounds.
MODELFLOW_INLINE void transpose_registers(Floats (&r)[8]) {
  __m256 t[8], u[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

#else

MODELFLOW_INLINE void transpose_registers(Floats (&r)[kLanes]) {
  for (std::size_t i = 0; i < kLanes; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const float x = r[i][j];
      r[i][j] = r[j][i];
      r[j][i] = x;
    }
}

#endif

/// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < columns; more of them than a vector has lanes count as so
/// many. All lanes of `written` are stored, with 0 beyond the rows.
template <class Part>
MODELFLOW_INLINE void transpose_block(const float* x, std::size_t x_step, float* y, std::size_t y_step,
                                      std::size_t rows, std::size_t columns, Part written) {
  Floats r[kLanes];
  if (kLanes < 16 && rows >= kLanes && columns >= kLanes) {  // where masks cost something
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kLanes; ++i) r[i] = load(x + i * x_step);
    transpose_registers(r);
#pragma GCC unroll 16
    for (std::size_t j = 0; j < kLanes; ++j) store(y + j * y_step, r[j]);
    return;
  }
  const Rest read(columns < kLanes ? columns : kLanes);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kLanes; ++i) r[i] = i < rows ? load(x + i * x_step, read) : Floats{};
  transpose_registers(r);
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kLanes; ++j)
    if (j < columns) store(y + j * y_step, r[j], written);
}

/// The same for any number of rows and columns.
[[maybe_unused]] void transpose(const float* x, std::size_t x_step, float* y, std::size_t y_step, std::size_t rows,
                                std::size_t columns) {
  for (std::size_t j = 0; j < columns; j += kLanes)
    for (std::size_t i = 0; i < rows; i += kLanes) {
      const std::size_t left = rows - i;
      transpose_block(x + i * x_step + j, x_step, y + j * y_step + i, y_step, left, columns - j,
                      Rest(left < kLanes ? left : kLanes));
    }
}

}  // namespace
}  // namespace modelflow::cpu
