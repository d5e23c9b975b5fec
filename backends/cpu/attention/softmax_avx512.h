// Softmax on rows of attention scores. For files compiled for AVX-512 only: internal linkage, as vector.h says.
#pragma once

#include "backends/cpu/attention/causal.h"
#include "backends/cpu/attention/grid.h"
#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {

/// AttentionCode::stream.
void attention_stream_avx512(const AttentionHead& head, AttentionRow* rows, std::size_t count, std::size_t begin,
                             std::size_t end);

namespace {

MODELFLOW_INLINE std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }

/// The lanes of each of four registers, combined by `f`: one register's after the other's.
template <class F>
MODELFLOW_INLINE __m128 combine4(const __m512 (&x)[4], F f) {
  const __m512 ab = f(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
  const __m512 cd = f(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
  const __m512 all = f(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
  const __m512 half = f(all, _mm512_shuffle_f32x4(all, all, 0x4e));
  return _mm512_castps512_ps128(f(half, _mm512_shuffle_f32x4(half, half, 0xb1)));
}
MODELFLOW_INLINE __m128 sums4(const __m512 (&x)[4]) {
  return combine4(
      x, [](__m512 a, __m512 b) __attribute__((always_inline)) { return _mm512_add_ps(a, b); });
}
MODELFLOW_INLINE __m128 largest4(const __m512 (&x)[4]) {
  return combine4(
      x, [](__m512 a, __m512 b) __attribute__((always_inline)) { return _mm512_max_ps(a, b); });
}

MODELFLOW_INLINE __m512 add_numbers(const AttentionMask& mask, __m512 x, std::size_t j, __mmask16 m) {
  return _mm512_add_ps(x, mask.stride.column ? _mm512_maskz_loadu_ps(m, mask.numbers + j)  //
                                             : _mm512_set1_ps(*mask.numbers));
}

/// What the mask makes of up to 16 scores from key j on.
MODELFLOW_INLINE __m512 masked(const AttentionMask& mask, __m512 x, std::size_t j, __mmask16 m) {
  if (mask.numbers && !mask.numbers_last) x = add_numbers(mask, x, j, m);
  if (mask.flags) {
    const __m128i flags = mask.flag_stride.column ? _mm_maskz_loadu_epi8(m, mask.flags + j)
                                                  : _mm_set1_epi8(static_cast<char>(*mask.flags));
    const __mmask16 on = _mm_test_epi8_mask(flags, flags);
    if (mask.on_replaces) {
      x = _mm512_mask_mov_ps(x, on, _mm512_set1_ps(mask.on));
    } else if (mask.off_replaces) {
      x = _mm512_mask_mov_ps(_mm512_set1_ps(mask.off), on, x);
    } else {
      x = _mm512_add_ps(x, _mm512_mask_blend_ps(on, _mm512_set1_ps(mask.off), _mm512_set1_ps(mask.on)));
    }
  }
  return mask.numbers && mask.numbers_last ? add_numbers(mask, x, j, m) : x;
}

/// Lets the mask act on a row of scores; the largest of what comes out, lane by lane.
MODELFLOW_INLINE __m512 largest(float* s, std::size_t n, const AttentionMask& mask) {
  const __m512 nothing = _mm512_set1_ps(kNothing);
  __m512 best = nothing;
  if (!mask) {
    for (std::size_t j = 0; j < n; j += 16) {
      best = _mm512_max_ps(best, _mm512_mask_loadu_ps(nothing, first_lanes(n - j), s + j));
    }
    return best;
  }
  for (std::size_t j = 0; j < n; j += 16) {
    const __mmask16 m = first_lanes(n - j);
    const __m512 x = masked(mask, _mm512_maskz_loadu_ps(m, s + j), j, m);
    _mm512_mask_storeu_ps(s + j, m, x);
    best = _mm512_mask_max_ps(best, m, best, x);
  }
  return best;
}

/// The same with all that hides keys; the n keys begin at `key`, where `mask` begins too.
MODELFLOW_INLINE __m512 largest_left(const AttentionHead& h, const AttentionMask& mask, std::size_t row,
                                     std::size_t key, std::size_t n, float* s) {
  mask.fetch(h.rows - row, n);
  if (!h.whole) return largest(s, n, mask);
  if (h.causal.first) hide(h, row, key, n, s);
  const __m512 best = largest(s, n, mask);
  if (h.causal.first) return best;
  hide(h, row, key, n, s);
  return largest(s, n, {});
}

/// The most that the mask makes of this score over n keys.
MODELFLOW_INLINE float mask_top(const AttentionMask& mask, float score, std::size_t n) {
  const __m512 x = _mm512_set1_ps(score), most = _mm512_set1_ps(-kNothing);
  __m512 best = _mm512_set1_ps(kNothing);
  for (std::size_t j = 0; j < n; j += 16) {
    const __mmask16 m = first_lanes(n - j);
    const __m512 y = masked(mask, x, j, m);
    best = _mm512_mask_max_ps(best, m, best, _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q), most));
  }
  return _mm512_reduce_max_ps(best);
}

/// AttentionCode::largest
[[maybe_unused]] float largest_size(const float* x, std::size_t rows, std::size_t n, std::size_t step) {
  __m512i best = _mm512_setzero_si512();
  const __m512i size = _mm512_set1_epi32(0x7fffffff);
  for (std::size_t r = 0; r < rows; ++r, x += step)
    for (std::size_t i = 0; i < n; i += 16)
      best = _mm512_max_epu32(best, _mm512_and_si512(size, _mm512_maskz_loadu_epi32(first_lanes(n - i), x + i)));
  return _mm512_reduce_max_ps(_mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(_mm512_reduce_max_epu32(best)))));
}

/// s = exp(s - max), and the sum, lane by lane.
MODELFLOW_INLINE __m512 exponentials(float* s, std::size_t n, float max, const ExpOfNegative& exp) {
  const __m512 base = _mm512_set1_ps(max == kNothing ? 0 : max);
  __m512 sum = _mm512_setzero_ps();
  std::size_t j = 0;
  for (; j + 16 <= n; j += 16) {
    const __m512 e = exp(_mm512_sub_ps(_mm512_loadu_ps(s + j), base));
    _mm512_storeu_ps(s + j, e);
    sum = _mm512_add_ps(sum, e);
  }
  if (j < n) {
    const __mmask16 m = tail_mask(n - j);
    const __m512 e = _mm512_maskz_mov_ps(m, exp(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, s + j), base)));
    _mm512_mask_storeu_ps(s + j, m, e);
    sum = _mm512_add_ps(sum, e);
  }
  return sum;
}

/// s = cap * tanh(s / cap). Close to 0 off by half an ulp of 1, which is nothing to a softmax.
MODELFLOW_INLINE void soft_cap(float* s, std::size_t n, float cap, const ExpOfNegative& exp) {
  const __m512 slope = _mm512_set1_ps(1 / cap), height = _mm512_set1_ps(cap), one = _mm512_set1_ps(1);
  const __m512 minus_two = _mm512_set1_ps(-2), sign = _mm512_set1_ps(-0.0f);
  for (std::size_t j = 0; j < n; j += 16) {
    const __mmask16 m = first_lanes(n - j);
    const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, s + j), slope);
    const __m512 e = exp(_mm512_mul_ps(_mm512_abs_ps(x), minus_two));
    const __m512 t = _mm512_div_ps(_mm512_sub_ps(one, e), _mm512_add_ps(one, e));
    _mm512_mask_storeu_ps(s + j, m, _mm512_mul_ps(_mm512_or_ps(t, _mm512_and_ps(x, sign)), height));
  }
}

MODELFLOW_INLINE float exp_of_negative(float x, const ExpOfNegative& exp) {
  return _mm512_cvtss_f32(exp(_mm512_set1_ps(x)));
}

/// Rows of an operand to fetch ahead: they lie in as many pages.
constexpr std::size_t kFetchedRows = 8;

MODELFLOW_INLINE void fetch(const float* row, std::size_t floats) {
  for (std::size_t i = 0; i < floats; i += 16) _mm_prefetch(reinterpret_cast<const char*>(row + i), _MM_HINT_T0);
}

}  // namespace
}  // namespace modelflow::cpu
