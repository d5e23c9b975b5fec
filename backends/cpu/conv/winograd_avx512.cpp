// The transformations of Winograd's method, of 16 channels at a time.
#include "backends/cpu/conv/winograd_avx512.h"

#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

MODELFLOW_INLINE __m512 add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
MODELFLOW_INLINE __m512 sub(__m512 a, __m512 b) { return _mm512_sub_ps(a, b); }
/// a * number + b
MODELFLOW_INLINE __m512 fma(__m512 a, float number, __m512 b) { return _mm512_fmadd_ps(a, _mm512_set1_ps(number), b); }

/// F(2, 3) in one dimension: 4 inputs to 4 frequencies, 4 products to 2 results.
struct Two {
  static constexpr int kResults = 2, kInputs = 4;
  MODELFLOW_INLINE static void input(const __m512* d, std::ptrdiff_t step, __m512* v) {
    const __m512 a = d[0], b = d[step], c = d[2 * step], e = d[3 * step];
    v[0] = sub(a, c);
    v[1] = add(b, c);
    v[2] = sub(c, b);
    v[3] = sub(b, e);
  }
  MODELFLOW_INLINE static void output(const __m512* p, std::ptrdiff_t step, __m512* y) {
    const __m512 b = p[step], c = p[2 * step];
    y[0] = add(p[0], add(b, c));
    y[1] = sub(sub(b, c), p[3 * step]);
  }
};

/// F(4, 3), with the points 0, 1, -1, 2, -2 and infinity.
struct Four {
  static constexpr int kResults = 4, kInputs = 6;
  MODELFLOW_INLINE static void input(const __m512* d, std::ptrdiff_t step, __m512* v) {
    const __m512 d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step];
    const __m512 even = fma(d2, -4, d4), odd = fma(d1, -4, d3), outer = sub(d4, d2), inner = sub(d3, d1);
    v[0] = fma(d[0], 4, fma(d2, -5, d4));
    v[1] = add(even, odd);
    v[2] = sub(even, odd);
    v[3] = fma(inner, 2, outer);
    v[4] = fma(inner, -2, outer);
    v[5] = fma(d1, 4, fma(d3, -5, d[5 * step]));
  }
  MODELFLOW_INLINE static void output(const __m512* p, std::ptrdiff_t step, __m512* y) {
    const __m512 p1 = p[step], p2 = p[2 * step], p3 = p[3 * step], p4 = p[4 * step];
    const __m512 sum = add(p1, p2), difference = sub(p1, p2), sum2 = add(p3, p4), difference2 = sub(p3, p4);
    y[0] = add(p[0], add(sum, sum2));
    y[1] = fma(difference2, 2, difference);
    y[2] = fma(sum2, 4, sum);
    y[3] = add(fma(difference2, 8, difference), p[5 * step]);
  }
};

struct Place {
  std::int64_t image, row, column;  // of the first result of a tile
};

Place place_of(const WinogradRun& run, std::int64_t tile) {
  const std::int64_t column = tile % run.across, row = tile / run.across % run.down;
  return {tile / run.across / run.down, row * run.m, column * run.m};
}

template <class F>
void input_tile(const WinogradRun& run, const Place& place, std::int64_t rows, float* v) {
  constexpr int n = F::kInputs;
  const ConvProblem& p = run.problem;
  const std::int64_t row = place.row - p.top, column = place.column - p.left;
  // Outside of x nothing is read: such addresses go with an empty mask.
  const float* x = p.x + ((place.image * p.height + row) * p.width + column) * p.channels;
  const std::int64_t row_step = p.width * p.channels;
  bool inside[n][n];
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j)
      inside[i][j] = row + i >= 0 && row + i < p.height && column + j >= 0 && column + j < p.width;
  }
  for (std::int64_t c = 0; c < p.channels; c += 16) {
    const __mmask16 mask = first_lanes(static_cast<std::size_t>(p.channels - c));
    __m512 half[n][n];  // [column][frequency of rows]
    for (int j = 0; j < n; ++j) {
      __m512 d[n];
      for (int i = 0; i < n; ++i) {
        d[i] = _mm512_maskz_loadu_ps(inside[i][j] ? mask : static_cast<__mmask16>(0),
                                     x + i * row_step + j * p.channels + c);
      }
      F::input(d, 1, half[j]);
    }
    for (int i = 0; i < n; ++i) {
      __m512 out[n];
      F::input(&half[0][i], n, out);
      for (int j = 0; j < n; ++j) _mm512_mask_storeu_ps(v + (i * n + j) * rows * run.pixel + c, mask, out[j]);
    }
  }
}

/// Whether one of a tile's results is none of ordinary numbers: a huge one, or NaN. In the others what a huge number of
/// x swallowed may be missing, without a trace where that cancels.
template <int count>
MODELFLOW_INLINE bool any_spoiled(const __m512* results) {
  __mmask16 found = 0;
  for (int i = 0; i < count; ++i)
    found |= _mm512_cmp_ps_mask(_mm512_abs_ps(results[i]), _mm512_set1_ps(1e20F), _CMP_NLE_UQ);
  return found != 0;
}

/// Results of up to 16 filters from k on at (row, column) of an image, by their definition: a number of x that is
/// infinite, none or huge spreads over all results of its tiles, and is to spoil its own alone.
__attribute__((noinline)) void direct(const WinogradRun& run, std::int64_t image, std::int64_t row, std::int64_t column,
                                      std::int64_t k, float (&sums)[16]) {
  const ConvProblem& p = run.problem;
  for (std::int64_t f = 0; f < 16; ++f) {
    sums[f] = 0;
    for (std::int64_t tap = 0; tap < 9 && k + f < p.filters; ++tap) {
      const std::int64_t y = row - p.top + tap / 3, x = column - p.left + tap % 3;
      if (y < 0 || y >= p.height || x < 0 || x >= p.width) continue;
      const float* from = p.x + ((image * p.height + y) * p.width + x) * p.channels;
      const float* w = run.plain + (k + f) * p.channels * 9 + tap;
      for (std::int64_t c = 0; c < p.channels; ++c) sums[f] += from[c] * w[9 * c];
    }
  }
}

template <class F, class Activate>
void output_tile(const WinogradRun& run, const Place& place, std::int64_t rows, const float* products, Activate f) {
  constexpr int n = F::kInputs, m = F::kResults;
  const ConvProblem& p = run.problem;
  const std::int64_t high = p.rows - place.row, wide = p.columns - place.column;
  const std::int64_t at = ((place.image * p.rows + place.row) * p.columns + place.column) * p.filters;
  const std::int64_t row_step = p.columns * p.filters;
  const bool before = p.added && p.residual == ops::Residual::before;
  const bool after = p.added && p.residual == ops::Residual::after;
  for (std::int64_t k = 0; k < p.filters; k += 16) {
    const __mmask16 mask = first_lanes(static_cast<std::size_t>(p.filters - k));
    const __m512 bias = _mm512_loadu_ps(p.bias + k);  // rounded up to whole vectors
    __m512 half[n][m];                                // [frequency of columns][row]
    for (int j = 0; j < n; ++j) {
      __m512 d[n];
      for (int i = 0; i < n; ++i) d[i] = _mm512_maskz_loadu_ps(mask, products + (i * n + j) * rows * p.filters + k);
      F::output(d, 1, half[j]);
    }
    __m512 out[m][m];
    for (int i = 0; i < m; ++i) F::output(&half[0][i], m, out[i]);
    const bool spoiled = any_spoiled<m * m>(out[0]);
    for (int i = 0; i < m && i < high; ++i) {
      for (int j = 0; j < m && j < wide; ++j) {
        const std::int64_t pixel = at + i * row_step + j * p.filters + k;
        if (spoiled) {
          alignas(64) float sums[16];
          direct(run, place.image, place.row + i, place.column + j, k, sums);
          out[i][j] = _mm512_load_ps(sums);
        }
        __m512 y = add(out[i][j], bias);
        if (before) y = add(y, _mm512_maskz_loadu_ps(mask, p.added + pixel));
        y = f(y);
        if (after) y = add(y, _mm512_maskz_loadu_ps(mask, p.added + pixel));
        _mm512_mask_storeu_ps(p.y + pixel, mask, y);
      }
    }
  }
}

}  // namespace

void winograd_input_avx512(const WinogradRun& run, std::int64_t first, std::int64_t last, std::int64_t rows, float* v) {
  const auto tile = run.m == 4 ? input_tile<Four> : input_tile<Two>;
  for (std::int64_t t = first; t < last; ++t, v += run.pixel) tile(run, place_of(run, t), rows, v);
}

void winograd_output_avx512(const WinogradRun& run, std::int64_t first, std::int64_t last, std::int64_t rows,
                            const float* products) {
  with_activation(run.problem.activation, [&](auto f) {
    for (std::int64_t t = first; t < last; ++t) {
      const float* from = products + (t - first) * run.problem.filters;
      if (run.m == 4) {
        output_tile<Four>(run, place_of(run, t), rows, from, f);
      } else {
        output_tile<Two>(run, place_of(run, t), rows, from, f);
      }
    }
  });
}

}  // namespace modelflow::cpu
