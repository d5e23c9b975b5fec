// Scores of a few rows of float32 attention, and their exponentials. For files compiled for AVX-512 only: internal
// linkage, as vector.h says.
#pragma once

#include "backends/cpu/attention/softmax_avx512.h"
#include "backends/cpu/gemm/f32.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kShort = 64;  // keys: rows of a mask that lie so close that four of them are one stream

/// Scores of a few rows, `row` floats apart, and the numbers of their mask, where there is one.
struct Scores {
  float* at;
  std::size_t row, n;
  const float* numbers;
  std::size_t numbers_row;
};

/// What scores of R rows and NV registers of keys are computed from.
struct ScoreTile {
  const float *q, *keys;  // keys in panels
  std::size_t q_row, depth, panel;
  float scale;
  Scores scores;  // n: that there are from the first key of the tile on
  float* tops;    // the largest of each row, lane by lane
};

/// Scores with what the mask adds, and the largest: a pass over them less than behind a product.
template <std::size_t R, std::size_t NV, bool Numbers>
void score_tile(const ScoreTile& t) {
  __m512 sum[R][NV] = {};
  const float *q = t.q, *k = t.keys, *k2 = t.keys + t.panel;
  const std::size_t q_row = t.q_row;
  for (std::size_t d = 0; d < t.depth; ++d, ++q, k += f32_avx512.panel, k2 += f32_avx512.panel) {
    __m512 key[NV];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < NV; ++v) key[v] = _mm512_loadu_ps((v < 2 ? k : k2) + v % 2 * 16);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < R; ++r) {
      const __m512 x = _mm512_set1_ps(q[r * q_row]);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < NV; ++v) sum[r][v] = _mm512_fmadd_ps(x, key[v], sum[r][v]);
    }
  }
  const __m512 scale = _mm512_set1_ps(t.scale), nothing = _mm512_set1_ps(kNothing);
#pragma GCC unroll 6
  for (std::size_t r = 0; r < R; ++r) {
    __m512 top = _mm512_loadu_ps(t.tops + r * 16);
#pragma GCC unroll 4
    for (std::size_t v = 0; v < NV; ++v) {
      const __mmask16 m = v * 16 < t.scores.n ? first_lanes(t.scores.n - v * 16) : __mmask16{0};
      __m512 x = _mm512_mul_ps(sum[r][v], scale);
      if (Numbers) {
        const float* numbers = t.scores.numbers + r * t.scores.numbers_row + v * 16;
        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(m, numbers));
        __builtin_prefetch(numbers + kFetchedRows * t.scores.numbers_row);
      }
      x = _mm512_mask_mov_ps(nothing, m, x);
      _mm512_storeu_ps(t.scores.at + r * t.scores.row + v * 16, x);
      top = _mm512_max_ps(top, x);
    }
    _mm512_storeu_ps(t.tops + r * 16, top);
  }
}

/// Scores of up to 6 rows.
template <bool Numbers>
void scores_of(ScoreTile t, std::size_t rows) {
  constexpr decltype(&score_tile<1, 2, Numbers>) kTiles[2][6] = {
      {score_tile<1, 2, Numbers>, score_tile<2, 2, Numbers>, score_tile<3, 2, Numbers>, score_tile<4, 2, Numbers>,
       score_tile<5, 2, Numbers>, score_tile<6, 2, Numbers>},
      {score_tile<1, 4, Numbers>, score_tile<2, 4, Numbers>, score_tile<3, 4, Numbers>, score_tile<4, 4, Numbers>,
       score_tile<5, 4, Numbers>, score_tile<6, 4, Numbers>}};
  for (std::size_t r = 0; r < rows; ++r) _mm512_storeu_ps(t.tops + r * 16, _mm512_set1_ps(kNothing));
  for (std::size_t left = t.scores.n;;) {
    t.scores.n = left;
    const bool wide = left > f32_avx512.panel;
    kTiles[wide][rows - 1](t);
    const std::size_t done = wide ? 2 * f32_avx512.panel : f32_avx512.panel;
    if (left <= done) return;
    left -= done;
    t.keys += 2 * t.panel;
    t.scores.at += done;
    if (Numbers) t.scores.numbers += done;
  }
}

/// The second half of exponentials_of, once the largest of each row is known lane by lane.
template <std::size_t R>
MODELFLOW_INLINE void powers_of(float* s, std::size_t row, std::size_t n, __m512 (&lanes)[4], const ExpOfNegative& exp,
                                float* max, float* sum) {
  __m128 top = R == 4 ? _mm_loadu_ps(max) : _mm_load_ss(max);
  top = _mm_max_ps(largest4(lanes), top);
  R == 4 ? _mm_storeu_ps(max, top) : _mm_store_ss(max, top);
  top = _mm_mask_mov_ps(top, _mm_cmp_ps_mask(top, _mm_set1_ps(kNothing), _CMP_EQ_OQ), _mm_setzero_ps());
  const __m512 wide = _mm512_broadcast_f32x4(top);
  const __m512 base[4] = {_mm512_permute_ps(wide, 0), _mm512_permute_ps(wide, 0x55), _mm512_permute_ps(wide, 0xaa),
                          _mm512_permute_ps(wide, 0xff)};
  for (__m512& part : lanes) part = _mm512_setzero_ps();
  for (std::size_t j = 0; j < n; j += 16) {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < R; ++r) {
      const __m512 e = exp(_mm512_sub_ps(_mm512_loadu_ps(s + r * row + j), base[r]));
      _mm512_storeu_ps(s + r * row + j, e);
      lanes[r] = _mm512_add_ps(lanes[r], e);
    }
  }
  R == 4 ? _mm_storeu_ps(sum, sums4(lanes)) : _mm_store_ss(sum, sums4(lanes));
}

/// Scores of 4 rows (or 1) become exponentials, up to the end of their last register, where they are 0. `max`: the
/// largest that was found before, and now. Whole registers are stored: what is read soon after a part of a register was
/// written waits for it. Rows side by side: their chains of instructions overlap.
template <std::size_t R, bool Numbers>
MODELFLOW_INLINE void exponentials_of(const Scores& scores, const ExpOfNegative& exp, float* max, float* sum) {
  const __m512 nothing = _mm512_set1_ps(kNothing);
  float* const s = scores.at;
  const float* const numbers = scores.numbers;
  const std::size_t n = scores.n, row = scores.row, numbers_row = scores.numbers_row;
  __m512 lanes[4] = {nothing, nothing, nothing, nothing};
  const auto take = [&](std::size_t r, std::size_t j) __attribute__((always_inline)) {
    const __mmask16 m = first_lanes(n - j);
    __m512 x = _mm512_mask_loadu_ps(nothing, m, s + r * row + j);
    if (Numbers) {
      x = _mm512_mask_add_ps(x, m, x, _mm512_maskz_loadu_ps(m, numbers + r * numbers_row + j));
      __builtin_prefetch(numbers + (r + kFetchedRows) * numbers_row + j);
    }
    if (Numbers || n % 16 != 0) _mm512_storeu_ps(s + r * row + j, x);
    lanes[r] = _mm512_max_ps(lanes[r], x);
  };
  if (!Numbers || n <= kShort) {
    for (std::size_t j = 0; j < n; j += 16) {
#pragma GCC unroll 4
      for (std::size_t r = 0; r < R; ++r) take(r, j);
    }
  } else {  // a mask is read as it lies
#pragma GCC unroll 4
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t j = 0; j < n; j += 16) take(r, j);
    }
  }
  powers_of<R>(s, row, n, lanes, exp, max, sum);
}

}  // namespace
}  // namespace modelflow::cpu
