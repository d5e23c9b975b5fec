// The transformations of Winograd's method, of a vector of channels at a time. For files named so, see vector.h.
#pragma once

#include "backends/cpu/conv/late_residual.h"
#include "backends/cpu/conv/winograd.h"
#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// a * number + b
MODELFLOW_INLINE Floats fma(Floats a, float number, Floats b) { return a * number + b; }

/// F(2, 3) in one dimension: 4 inputs to 4 frequencies, 4 products to 2 results.
struct Two {
  static constexpr int kResults = 2, kInputs = 4;
  MODELFLOW_INLINE static void input(const Floats* d, std::ptrdiff_t step, Floats* v) {
    const Floats a = d[0], b = d[step], c = d[2 * step], e = d[3 * step];
    v[0] = a - c;
    v[1] = b + c;
    v[2] = c - b;
    v[3] = b - e;
  }
  MODELFLOW_INLINE static void output(const Floats* p, std::ptrdiff_t step, Floats* y) {
    const Floats b = p[step], c = p[2 * step];
    y[0] = p[0] + (b + c);
    y[1] = b - c - p[3 * step];
  }
};

/// F(4, 3), with the points 0, 1, -1, 2, -2 and infinity.
struct Four {
  static constexpr int kResults = 4, kInputs = 6;
  MODELFLOW_INLINE static void input(const Floats* d, std::ptrdiff_t step, Floats* v) {
    const Floats d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step];
    const Floats even = fma(d2, -4, d4), odd = fma(d1, -4, d3), outer = d4 - d2, inner = d3 - d1;
    v[0] = fma(d[0], 4, fma(d2, -5, d4));
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = fma(inner, 2, outer);
    v[4] = fma(inner, -2, outer);
    v[5] = fma(d1, 4, fma(d3, -5, d[5 * step]));
  }
  MODELFLOW_INLINE static void output(const Floats* p, std::ptrdiff_t step, Floats* y) {
    const Floats p1 = p[step], p2 = p[2 * step], p3 = p[3 * step], p4 = p[4 * step];
    const Floats sum = p1 + p2, difference = p1 - p2, sum2 = p3 + p4, difference2 = p3 - p4;
    y[0] = p[0] + (sum + sum2);
    y[1] = fma(difference2, 2, difference);
    y[2] = fma(sum2, 4, sum);
    y[3] = fma(difference2, 8, difference) + p[5 * step];
  }
};

struct Place {
  std::int64_t image, plane, row, column;  // of the first result of a tile
};

/// Of the first tile of a stack.
Place place_of(const WinogradRun& run, std::int64_t stack) {
  const std::int64_t column = stack % run.across, row = stack / run.across % run.down;
  return {stack / run.across / run.down / run.deep, run.plane(stack), row * run.m, column * run.m};
}

/// With m = 4 a result is as exact as the largest numbers of its tile are: what they add to those that do not see them
/// cancels but for their last digit. Where these are so many times as large as all that a result sees, it is computed
/// by itself. Behind images and convolutions of trained models they are up to about 4 times as large. (With m = 2
/// nothing cancels but what both results of a row see.)
constexpr float kFar = 16;

/// Whether all that a pixel of the tile holds is beyond kFar times what is seen, both as sums of squares.
bool is_far(float pixel, float seen) { return !(pixel <= kFar * kFar * seen); }

/// Adds the squares of n numbers up.
struct Squares {
  Floats sums[4] = {};
  MODELFLOW_INLINE void add(const float* x, std::int64_t n) {
    vectors_by_four(static_cast<std::size_t>(n), [&](std::size_t i, auto part, std::size_t v) {
      const Floats d = load(x + i, part);
      sums[v] += d * d;
    });
  }
  MODELFLOW_INLINE float total() const { return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3])); }
};

/// A pixel of x, or null in the padding.
const float* pixel_at(const ConvProblem& p, std::int64_t image, std::int64_t z, std::int64_t y, std::int64_t x) {
  if (z < 0 || z >= p.depth || y < 0 || y >= p.height || x < 0 || x >= p.width) return nullptr;
  return p.x + (((image * p.depth + z) * p.height + y) * p.width + x) * p.channels;
}

/// The pixels of a tile of 4 x 4 results, of all planes that they see.
struct Pixels {
  static constexpr int n = Four::kInputs, m = Four::kResults;
  const ConvProblem& p;
  Place place;

  float size(int i, int j) const {
    Squares squares;
    for (std::int64_t tap = 0; tap < p.kernel_d; ++tap) {
      const float* x =
          pixel_at(p, place.image, place.plane - p.front + tap, place.row - p.top + i, place.column - p.left + j);
      if (x) squares.add(x, p.channels);
    }
    return squares.total();
  }

  /// The results that see too little, a bit each.
  __attribute__((noinline)) std::uint32_t find_apart() const {
    float sizes[n][n], largest = 0;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        sizes[i][j] = size(i, j);
        if (sizes[i][j] > largest) largest = sizes[i][j];
      }
    }
    std::uint32_t apart = 0;
    for (int result = 0; result < m * m; ++result) {
      float seen = 0;
      for (int tap = 0; tap < 9; ++tap) {
        const float one = sizes[result / m + tap / 3][result % m + tap % 3];
        if (!(one <= seen)) seen = one;
      }
      if (is_far(largest, seen)) apart |= std::uint32_t{1} << result;
    }
    return apart;
  }
};

/// The squares of a tile of 6 x 6 pixels, all of them and those of the pixels of odd rows and columns but the last:
/// each result sees one of these.
struct TileSquares {
  Floats all_pixels = {}, odd[2][2] = {};

  /// A column of six pixels.
  MODELFLOW_INLINE void add(const Floats* d, int column) {
    Floats squares[6];
    for (int i = 0; i < 6; ++i) squares[i] = d[i] * d[i];
    all_pixels += (squares[0] + squares[1]) + (squares[2] + squares[3]) + (squares[4] + squares[5]);
    if (column % 2 == 0 || column == 5) return;
    for (int i = 0; i < 2; ++i) odd[i][column / 2] += squares[2 * i + 1];
  }
  /// Whether a result may see too little, of `high` x `wide` results that count.
  MODELFLOW_INLINE bool may_be_far(std::int64_t high, std::int64_t wide) const {
    bool far = false;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        far |= 2 * i < high && 2 * j < wide && !(sum_of(odd[i][j] * (kFar * kFar) - all_pixels) >= 0);
    return far;
  }
};

/// The tile of plane z of x, of the results at `place`. Gives whether one may see too little, with m = 4.
template <class F>
bool input_tile(const WinogradRun& run, const Place& place, std::int64_t z, float* v) {
  constexpr int n = F::kInputs;
  const ConvProblem& p = run.problem;
  const std::int64_t row = place.row - p.top, column = place.column - p.left;
  const float* x = p.x + (((place.image * p.depth + z) * p.height + row) * p.width + column) * p.channels;
  const std::int64_t row_step = p.width * p.channels;
  bool inside[n][n];
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j)
      inside[i][j] = row + i >= 0 && row + i < p.height && column + j >= 0 && column + j < p.width;
  }
  TileSquares squares;
  vectors(
      static_cast<std::size_t>(p.channels), [&](std::size_t c, auto part) __attribute__((always_inline)) {
        Floats half[n][n];  // [column][frequency of rows]
        for (int j = 0; j < n; ++j) {
          Floats d[n];
          for (int i = 0; i < n; ++i)
            d[i] = inside[i][j] ? load(x + i * row_step + j * p.channels + c, part) : Floats{};
          if constexpr (n == 6) squares.add(d, j);
          F::input(d, 1, half[j]);
        }
        for (int i = 0; i < n; ++i) {
          Floats out[n];
          F::input(&half[0][i], n, out);
          for (int j = 0; j < n; ++j) store(v + (i * n + j) * run.v_step + c, out[j], part);
        }
      });
  return n == 6 && squares.may_be_far(p.rows - place.row, p.columns - place.column);
}

/// Whether one of a tile's results is none of ordinary numbers: a huge one, or NaN. In the others what a huge number of
/// x swallowed may be missing, without a trace where that cancels.
template <int count>
MODELFLOW_INLINE bool any_spoiled(const Floats* results) {
  Ints ordinary = abs(results[0]) <= all(1e20F);
  for (int i = 1; i < count; ++i) ordinary &= abs(results[i]) <= all(1e20F);
  return !all_of(ordinary);
}

/// Results of a vector of filters from k on at `place`, by their definition. Zeros are `skipped` where all that a
/// result sees are zeros.
__attribute__((noinline, cold)) Floats direct(const WinogradRun& run, const Place& place, std::int64_t k,
                                              bool skipped) {
  const ConvProblem& p = run.problem;
  const std::int64_t taps = 9 * p.kernel_d, channels = kMostWinogradTaps / p.kernel_d;
  float window[9 * kMostWinogradTaps], sums[kLanes] = {};
  for (std::int64_t c = 0; c < p.channels; c += channels) {
    const std::int64_t count = p.channels - c < channels ? p.channels - c : channels;
    bool any = !skipped;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const float* from = pixel_at(p, place.image, place.plane - p.front + tap / 9, place.row - p.top + tap % 9 / 3,
                                   place.column - p.left + tap % 3);
      for (std::int64_t i = 0; i < count; ++i) {
        window[taps * i + tap] = from ? from[c + i] : 0;
        any = any || window[taps * i + tap] != 0;
      }
    }
    for (std::int64_t f = 0; any && f < static_cast<std::int64_t>(kLanes) && k + f < p.filters; ++f) {
      const float* w = run.plain + ((k + f) * p.channels + c) * taps;
      Floats sum[4] = {};
      vectors_by_four(static_cast<std::size_t>(taps * count), [&](std::size_t i, auto part, std::size_t v) {
        sum[v] += load(window + i, part) * load(w + i, part);
      });
      sums[f] += sum_of((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
  }
  return load(sums);
}

/// PRelu: the activation of one vector of filters after the other.
struct Bends {
  const float* slopes;
  ActivationSpec spec;
};
MODELFLOW_INLINE Affine<LeakyRelu> activation_from(const Bends& f, std::size_t k) {
  return {{load(f.slopes + k)}, all(f.spec.scale), all(f.spec.shift)};
}
template <class F>
MODELFLOW_INLINE F activation_from(const F& f, std::size_t) {
  return f;
}

template <class F, class Activate>
void output_tile(const WinogradRun& run, const Place& place, const float* products, std::uint32_t apart,
                 Activate activation) {
  constexpr int n = F::kInputs, m = F::kResults;
  const ConvProblem& p = run.problem;
  const std::int64_t high = p.rows - place.row, wide = p.columns - place.column;
  const std::int64_t at =
      (((place.image * p.planes + place.plane) * p.rows + place.row) * p.columns + place.column) * p.filters;
  const std::int64_t row_step = p.columns * p.filters;
  const ops::Residual residual = p.residual;
  vectors(
      static_cast<std::size_t>(p.filters), [&](std::size_t k, auto part) __attribute__((always_inline)) {
        const auto f = activation_from(activation, k);
        const Floats bias = load(p.bias + k);  // rounded up to whole vectors
        Floats half[n][m];                     // [frequency of columns][row]
        for (int j = 0; j < n; ++j) {
          Floats d[n];
          for (int i = 0; i < n; ++i) d[i] = load(products + (i * n + j) * run.products_step + k, part);
          F::output(d, 1, half[j]);
        }
        Floats out[m][m];
        for (int i = 0; i < m; ++i) F::output(&half[0][i], m, out[i]);
        const bool spoiled = any_spoiled<m * m>(out[0]);
        const std::uint32_t left = spoiled ? ~std::uint32_t{0} : apart;
        for (int i = 0; i < m && i < high; ++i) {
          for (int j = 0; j < m && j < wide; ++j) {
            const std::int64_t pixel = at + i * row_step + j * p.filters + static_cast<std::int64_t>(k);
            if (left != 0 && (left >> (i * m + j) & 1) != 0)
              out[i][j] = direct(run, {place.image, place.plane, place.row + i, place.column + j},
                                 static_cast<std::int64_t>(k), !spoiled);
            Floats y = out[i][j] + bias;
            if (residual == ops::Residual::before) y += load(p.added + pixel, part);
            y = f(y);
            with_late_residual(residual, [&](auto join) { y = join(y, load(p.added + pixel, part)); });
            store(p.y + pixel, y, part);
          }
        }
      });
}

void winograd_input(const WinogradRun& run, std::int64_t first, std::int64_t last, float* v, bool* far) {
  const auto tile = run.m == 4 ? input_tile<Four> : input_tile<Two>;
  const ConvProblem& p = run.problem;
  for (std::int64_t stack = first; stack < last; ++stack) {
    const Place place = place_of(run, stack);
    const std::int64_t read = run.taps().first;  // slices in front of it are not
    for (std::int64_t slice = 0; slice < run.slices(); ++slice, v += run.pixel) {
      const std::int64_t z = place.plane - p.front + slice;
      const bool inside = z >= 0 && z < p.depth;
      *far++ = inside && tile(run, place, z, v);
      for (std::int64_t f = 0; !inside && slice >= read && f < run.frequencies(); ++f)
        __builtin_memset(v + f * run.v_step, 0, static_cast<std::size_t>(p.channels) * sizeof(float));
    }
  }
}

/// The results of a tile that are to be computed by themselves, a bit each; `far` of the planes that they see.
std::uint32_t apart_of(const WinogradRun& run, const Place& place, const bool* far) {
  bool any = false;
  for (std::int64_t tap = 0; tap < run.problem.kernel_d; ++tap) any |= far[tap];
  return any ? Pixels{run.problem, place}.find_apart() : 0;
}

void winograd_output(const WinogradRun& run, std::int64_t first, std::int64_t last, const float* products,
                     const bool* far) {
  const auto tiles = [&](auto f) {
    for (std::int64_t stack = first; stack < last; ++stack) {
      Place place = place_of(run, stack);
      const float* from = products + (stack - first) * run.layers * run.problem.filters;
      const bool* seen = far + (stack - first) * run.slices();
      const std::int64_t left = run.problem.planes - place.plane, layers = left < run.layers ? left : run.layers;
      for (std::int64_t i = 0; i < layers; ++i, ++place.plane, ++seen, from += run.problem.filters) {
        const std::uint32_t apart = apart_of(run, place, seen);
        if (run.m == 4) {
          output_tile<Four>(run, place, from, apart, f);
        } else {
          output_tile<Two>(run, place, from, apart, f);
        }
      }
    }
  };
  const ConvProblem& p = run.problem;
  if (p.slopes) return tiles(Bends{p.slopes, p.activation});
  with_activation(p.activation, tiles);
}

}  // namespace
}  // namespace modelflow::cpu
