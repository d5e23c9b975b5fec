// Attention of few rows (one token of a text generator) on AVX-512: keys and values are read once, where they lie.
#include "backends/cpu/attention/softmax_avx512.h"

// Few rows of queries: keys and values pass by once, at the speed of memory, and each register of them serves all rows.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kAhead = 16;  // keys or values to fetch ahead

using Scores = float[kAttentionStream];

/// scores[r][j] = scale * q[r] k[j]; four sums at a time, of `R` rows and 4 / R keys.
template <std::size_t R>
void dot_products(const AttentionHead& h, const AttentionRow* rows, std::size_t begin, std::size_t count,
                  Scores* scores) {
  constexpr std::size_t kKeys = 4 / R;
  const float* k = h.k + begin * h.k_row;
  const __m128 scale = _mm_set1_ps(h.scale);
  for (std::size_t j = 0; j < count; j += kKeys, k += kKeys * h.k_row) {
    __m512 sum[4] = {};
    const std::size_t keys = least(kKeys, count - j);
    if (j + kAhead + kKeys <= count) {
      for (std::size_t i = 0; i < kKeys; ++i) fetch(k + (kAhead + i) * h.k_row, h.depth);
    }
    for (std::size_t d = 0; d < h.depth; d += 16) {
      const __mmask16 m = first_lanes(h.depth - d);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kKeys; ++i) {
        if (i >= keys) break;
        const __m512 x = _mm512_maskz_loadu_ps(m, k + i * h.k_row + d);
#pragma GCC unroll 4
        for (std::size_t r = 0; r < R; ++r) {
          sum[r * kKeys + i] = _mm512_fmadd_ps(x, _mm512_maskz_loadu_ps(m, rows[r].q + d), sum[r * kKeys + i]);
        }
      }
    }
    float found[4];
    _mm_storeu_ps(found, _mm_mul_ps(sums4(sum), scale));
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t i = 0; i < keys; ++i) scores[r][j + i] = found[r * kKeys + i];
    }
  }
}

/// values[r][0 .. columns) = weights[r] v, at most 64 columns.
template <std::size_t R>
MODELFLOW_INLINE void weighted_sum(const AttentionHead& h, const Scores* weights, std::size_t begin, std::size_t count,
                                   std::size_t column, AttentionRow* rows) {
  constexpr std::size_t kSteps = R == 1 ? 2 : 1;  // one row: two sums per column hide the latency
  const std::size_t columns = least(h.width - column, 64);
  const float* v = h.v + begin * h.v_row + column;
  __m512 sum[R * kSteps][4] = {};
  __mmask16 m[4];
  for (std::size_t i = 0; i < 4; ++i) m[i] = columns > 16 * i ? first_lanes(columns - 16 * i) : __mmask16{0};
  const auto add = [&](std::size_t j, std::size_t step) __attribute__((always_inline)) {
    if (j + kAhead < count) fetch(v + kAhead * h.v_row, columns);
    __m512 x[4];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) x[i] = _mm512_maskz_loadu_ps(m[i], v + 16 * i);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < R; ++r) {
      const __m512 w = _mm512_set1_ps(weights[r][j]);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i)
        sum[r * kSteps + step][i] = _mm512_fmadd_ps(w, x[i], sum[r * kSteps + step][i]);
    }
    v += h.v_row;
  };
  std::size_t j = 0;
  for (; j + kSteps <= count; j += kSteps) {
    add(j, 0);
    if (kSteps == 2) add(j + 1, 1);
  }
  if (j < count) add(j, 0);
#pragma GCC unroll 4
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      if (kSteps == 2) sum[r * kSteps][i] = _mm512_add_ps(sum[r * kSteps][i], sum[r * kSteps + 1][i]);
      _mm512_mask_storeu_ps(rows[r].values + column + 16 * i, m[i], sum[r * kSteps][i]);
    }
  }
}

template <std::size_t R>
void stream(const AttentionHead& h, AttentionRow* rows, std::size_t begin, std::size_t end) {
  const ExpOfNegative exp;
  alignas(64) Scores scores[R];
  const std::size_t count = end - begin;
  dot_products<R>(h, rows, begin, count, scores);
  for (std::size_t r = 0; r < R; ++r) {
    if (h.cap != 0) soft_cap(scores[r], count, h.cap, exp);
    if (rows[r].grid) add_grid(rows[r].grid, rows[r].index, begin, count, scores[r]);
    const AttentionMask mask = rows[r].mask.from(0, begin);
    rows[r].max = _mm512_reduce_max_ps(largest_left(h, mask, rows[r].index, begin, count, scores[r]));
    rows[r].sum = _mm512_reduce_add_ps(exponentials(scores[r], count, rows[r].max, exp));
  }
  for (std::size_t column = 0; column < h.width; column += 64) weighted_sum<R>(h, scores, begin, count, column, rows);
}

}  // namespace

void attention_stream_avx512(const AttentionHead& head, AttentionRow* rows, std::size_t count, std::size_t begin,
                             std::size_t end) {
  static_assert(kAttentionRows == 4);
  if (count == 4) return stream<4>(head, rows, begin, end);
  if (count >= 2) {
    stream<2>(head, rows, begin, end);
    rows += 2;
    count -= 2;
  }
  if (count == 1) stream<1>(head, rows, begin, end);
}

}  // namespace modelflow::cpu
