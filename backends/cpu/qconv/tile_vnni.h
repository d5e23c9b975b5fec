// The inner kernel of 8-bit convolutions: R output pixels x N vectors of 16 filters in registers. For files named
// *_vnni.cpp only; everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/qconv/dense.h"
#include "backends/cpu/qconv/epilogue_vnni.h"

namespace modelflow::cpu {
namespace {

struct QTile {
  const std::uint8_t* const* rows;  ///< R pointers per segment
  std::int64_t segments, from, to;  ///< bytes [from, to) behind each pointer, a multiple of 4
  const std::int8_t* b;             ///< packed weights, N vectors for each 4 bytes
  const std::int32_t* begin;
  const float* scale;
  std::int32_t* sums;        ///< R x N vectors
  const std::int8_t* ahead;  ///< weights to bring into L2 meanwhile, `ahead_step` bytes per vector of a row
  std::int64_t ahead_step;
  const std::uint8_t *later, *later_added;  ///< results and residual of a later tile, to bring into L1 meanwhile
  std::int64_t later_step;                  ///< from pixel to pixel
};

MODELFLOW_INLINE __m512i broadcast4(const std::uint8_t* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof four);
  return _mm512_set1_epi32(four);
}

/// What happens to the sums of a tile: they go to memory, for activations that do not fit between the sums, or become
/// results, without and with a residual.
enum class QEnd { sums, results, added };

/// Measured on Cascade Lake (2.4 GHz under this load, 614 GOP/s): 94 % of peak for 6 x 4 and long sums.
template <int R, int N, QEnd End>
void run_qtile(const QTile& t, const QFinish& finish, const QTarget& target) {
  __m512i acc[R][N];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = _mm512_loadu_si512(t.begin + 16 * j);
    _mm_prefetch(reinterpret_cast<const char*>(t.later + r * t.later_step), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(t.later_added + r * t.later_step), _MM_HINT_T0);
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
  if constexpr (End != QEnd::sums) return finish_sums<R, N, End == QEnd::added>(acc, finish, t.scale, target);
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) _mm512_store_si512(t.sums + (r * N + j) * 16, acc[r][j]);
  }
}

using QTileFunction = void (*)(const QTile&, const QFinish&, const QTarget&);

template <int N, QEnd End, int R = kQTileRows[N]>
QTileFunction qtile_of(std::int64_t rows) {
  if constexpr (R > 1) {
    if (rows < R) return qtile_of<N, End, R - 1>(rows);
  }
  return run_qtile<R, N, End>;
}

template <int N>
QTileFunction qtile_of(std::int64_t rows, QEnd end) {
  if (end == QEnd::results) return qtile_of<N, QEnd::results>(rows);
  return end == QEnd::added ? qtile_of<N, QEnd::added>(rows) : qtile_of<N, QEnd::sums>(rows);
}

/// What belongs to panels of one width.
struct QWidth {
  QTileFunction (*tile)(std::int64_t pixels, QEnd end);
  void (*finish)(const QFinish&, const std::int32_t*, const float*, const QTarget&, int pixels);
};

constexpr QWidth kQWidths[5] = {{nullptr, nullptr},
                                {qtile_of<1>, finish_pixels<1>},
                                {qtile_of<2>, finish_pixels<2>},
                                {qtile_of<3>, finish_pixels<3>},
                                {qtile_of<4>, finish_pixels<4>}};

}  // namespace
}  // namespace modelflow::cpu
