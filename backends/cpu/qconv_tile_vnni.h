#pragma once

// The inner kernel of 8-bit convolutions: R output pixels x N vectors of 16 filters in registers. For files named
// *_vnni.cpp only; everything has internal linkage.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/qconv_dense_vnni.h"
#include "backends/cpu/qconv_epilogue_vnni.h"

namespace modelflow::cpu {
namespace {

struct QTile {
  const std::uint8_t* const* rows;  ///< R pointers per segment
  std::int64_t segments, from, to;  ///< bytes [from, to) behind each pointer, a multiple of 4
  const std::int8_t* b;             ///< packed weights, N vectors for each 4 bytes
  const std::int32_t* begin;
  const float* scale;
  const std::int8_t* ahead;  ///< weights to bring into L2 meanwhile, `ahead_step` bytes per vector of a row
  std::int64_t ahead_step;
};

MODELFLOW_INLINE __m512i broadcast4(const std::uint8_t* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof four);
  return _mm512_set1_epi32(four);
}

/// Measured on Cascade Lake: the loads of N weights and R broadcasts hide behind R * N products.
template <int R, int N>
void run_qtile(const QTile& t, const QFinish& finish, const QTarget& target) {
  __m512i acc[R][N];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = _mm512_loadu_si512(t.begin + 16 * j);
  }
  // What the next tile will write and add: the sums of this one take longer than L3 does.
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
    _mm_prefetch(reinterpret_cast<const char*>(target.y + (R + r) * target.step), _MM_HINT_T0);
    if (target.added) _mm_prefetch(reinterpret_cast<const char*>(target.added + (R + r) * target.step), _MM_HINT_T0);
  }
  const std::uint8_t* const* rows = t.rows;
  const std::int8_t* b = t.b;
  const std::int8_t* ahead = t.ahead;
  for (std::int64_t s = 0; s < t.segments; ++s, rows += R) {
    const std::uint8_t* a[R];
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) a[r] = rows[r];
    for (std::int64_t k = t.from; k < t.to; k += 4) {
      __m512i w[N];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) w[j] = _mm512_loadu_si512(b + 64 * j);
#pragma GCC unroll 32
      for (int r = 0; r < R; ++r) {
        const __m512i v = broadcast4(a[r] + k);
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) multiply_add4(acc[r][j], v, w[j]);
      }
      b += 64 * N;
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
      ahead += t.ahead_step;
    }
  }
  alignas(64) std::int32_t sums[R * N * 16];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) _mm512_store_si512(sums + (r * N + j) * 16, acc[r][j]);
  }
  finish_tile<N>(finish, sums, t.scale, target, R);
}

using QTileFunction = void (*)(const QTile&, const QFinish&, const QTarget&);

template <int N, int R = kQTileRows[N]>
QTileFunction qtile_of(int rows) {
  if constexpr (R > 1) {
    if (rows < R) return qtile_of<N, R - 1>(rows);
  }
  return run_qtile<R, N>;
}

QTileFunction qtile_function(int rows, int vectors) {
  switch (vectors) {
    case 1:
      return qtile_of<1>(rows);
    case 2:
      return qtile_of<2>(rows);
    case 3:
      return qtile_of<3>(rows);
    default:
      return qtile_of<4>(rows);
  }
}

}  // namespace
}  // namespace modelflow::cpu
