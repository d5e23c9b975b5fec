#include <cmath>

#include "backends/cpu/attention_avx512.h"
#include "backends/cpu/softmax.h"

namespace modelflow::cpu {
namespace {

/// A product rounded for itself: one that runs into the difference behind it moves scores far from zero apart from
/// their largest.
MODELFLOW_INLINE __m512 product(__m512 a, __m512 b) { return _mm512_mul_round_ps(a, b, _MM_FROUND_CUR_DIRECTION); }

/// The scores of a row, 16 at a time. `Mask` is what becomes of them from score j on.
template <class Mask>
struct Scores {
  const float* x;
  __m512 scale;
  Mask mask;
  MODELFLOW_INLINE __m512 operator()(std::size_t j, __mmask16 m) const {
    return mask(product(_mm512_maskz_loadu_ps(m, x + j), scale), j, m);
  }
};

struct NoMask {
  MODELFLOW_INLINE __m512 operator()(__m512 x, std::size_t, __mmask16) const { return x; }
};
struct Masked {
  const AttentionMask& mask;
  MODELFLOW_INLINE __m512 operator()(__m512 x, std::size_t j, __mmask16 m) const { return masked(mask, x, j, m); }
};

/// Runs body(j, lanes, v) on all vectors of n floats, on four side by side: v tells them apart.
template <class Body>
MODELFLOW_INLINE void by_four(std::size_t n, Body body) {
  std::size_t j = 0;
  for (; j + 64 <= n; j += 64)
    for (std::size_t v = 0; v < 4; ++v) body(j + 16 * v, __mmask16{0xffff}, v);
  for (; j < n; j += 16) body(j, lanes(n - j), std::size_t{0});
}

template <class Mask>
MODELFLOW_INLINE void run(const SoftmaxRow& row, Mask mask) {
  const Scores<Mask> at{row.x, _mm512_set1_ps(row.scale), mask};
  const ExpOfNegative exp;
  __m512 best[4], sums[4];
  for (std::size_t v = 0; v < 4; ++v) best[v] = _mm512_set1_ps(kNothing), sums[v] = _mm512_setzero_ps();
  by_four(
      row.n, [&](std::size_t j, __mmask16 m, std::size_t v)
                 __attribute__((always_inline)) { best[v] = _mm512_mask_max_ps(best[v], m, best[v], at(j, m)); });
  const float max =
      _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(best[0], best[1]), _mm512_max_ps(best[2], best[3])));
  const __m512 base = _mm512_set1_ps(max == kNothing ? 0 : max);
  by_four(
      row.n, [&](std::size_t j, __mmask16 m, std::size_t v) __attribute__((always_inline)) {
        const __m512 e = exp(_mm512_sub_ps(at(j, m), base));
        if (!row.log) _mm512_mask_storeu_ps(row.y + j, m, e);
        sums[v] = _mm512_mask_add_ps(sums[v], m, sums[v], e);
      });
  const float sum =
      _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
  const __m512 factor = _mm512_set1_ps(row.log ? std::log(sum) : 1 / sum);
  by_four(
      row.n, [&](std::size_t j, __mmask16 m, std::size_t) __attribute__((always_inline)) {
        const __m512 y = row.log ? _mm512_sub_ps(_mm512_sub_ps(at(j, m), base), factor)
                                 : _mm512_mul_ps(_mm512_maskz_loadu_ps(m, row.y + j), factor);
        _mm512_mask_storeu_ps(row.y + j, m, y);
      });
}

void softmax_row(const SoftmaxRow& row) {
  if (!row.mask) return run(row, NoMask{});
  run(row, Masked{row.mask});
}

/// Vectors of columns side by side; `m` are the lanes of the last one.
template <std::size_t Vectors>
MODELFLOW_INLINE void run(const SoftmaxColumns& c, std::size_t at, __mmask16 m) {
  const ExpOfNegative exp;
  const __m512 scale = _mm512_set1_ps(c.scale);
  const float* const x = c.x + at;
  float* const y = c.y + at;
  const auto mask = [&](std::size_t v) { return v + 1 == Vectors ? m : __mmask16{0xffff}; };
  const auto score = [&](std::size_t i, std::size_t v) {
    return product(_mm512_maskz_loadu_ps(mask(v), x + i * c.inner + 16 * v), scale);
  };
  __m512 base[Vectors], sum[Vectors];
  for (std::size_t v = 0; v < Vectors; ++v) base[v] = _mm512_set1_ps(kNothing), sum[v] = _mm512_setzero_ps();
  for (std::size_t i = 0; i < c.n; ++i)
    for (std::size_t v = 0; v < Vectors; ++v) base[v] = _mm512_max_ps(base[v], score(i, v));
  for (std::size_t v = 0; v < Vectors; ++v)
    base[v] = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(base[v], _mm512_set1_ps(kNothing), _CMP_NEQ_UQ), base[v]);
  for (std::size_t i = 0; i < c.n; ++i)
    for (std::size_t v = 0; v < Vectors; ++v) {
      const __m512 e = exp(_mm512_sub_ps(score(i, v), base[v]));
      if (!c.log) _mm512_mask_storeu_ps(y + i * c.inner + 16 * v, mask(v), e);
      sum[v] = _mm512_add_ps(sum[v], e);
    }
  for (std::size_t v = 0; v < Vectors; ++v) {
    alignas(64) float each[16];
    _mm512_store_ps(each, sum[v]);
    for (float& s : each) s = c.log ? std::log(s) : 1 / s;
    sum[v] = _mm512_load_ps(each);
  }
  for (std::size_t i = 0; i < c.n; ++i)
    for (std::size_t v = 0; v < Vectors; ++v) {
      float* const to = y + i * c.inner + 16 * v;
      const __m512 s = c.log ? _mm512_sub_ps(_mm512_sub_ps(score(i, v), base[v]), sum[v])
                             : _mm512_mul_ps(_mm512_maskz_loadu_ps(mask(v), to), sum[v]);
      _mm512_mask_storeu_ps(to, mask(v), s);
    }
}

void softmax_columns(const SoftmaxColumns& columns) {
  std::size_t at = 0;
  for (; at + 64 <= columns.count; at += 64) run<4>(columns, at, __mmask16{0xffff});
  for (; at < columns.count; at += 16) run<1>(columns, at, lanes(columns.count - at));
}

}  // namespace

const SoftmaxCode softmax_code_avx512 = {softmax_row, softmax_columns};

}  // namespace modelflow::cpu
