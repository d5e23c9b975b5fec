// The transformations of Winograd's method, of a vector of channels at a time. For files named so, see vector.h.
#pragma once

#include "backends/cpu/conv/late_residual.h"
#include "backends/cpu/conv/winograd_forms.h"
#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

struct Place {
  std::int64_t image, plane, row, column;  // of the first result of a tile
};

/// Of the first tile of a stack.
Place place_of(const WinogradRun& run, std::int64_t stack) {
  const std::int64_t column = stack % run.across, row = stack / run.across % run.down;
  return {stack / run.across / run.down / run.deep, run.plane(stack), row * run.tile.high, column * run.tile.wide};
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
const float* pixel_at(const WinogradRun& run, std::int64_t image, std::int64_t z, std::int64_t y, std::int64_t x) {
  const ConvProblem& p = run.problem;
  if (z < 0 || z >= p.depth || y < 0 || y >= p.height || x < 0 || x >= p.width) return nullptr;
  return p.x + (((image * p.depth + z) * p.height + y) * p.width + x) * run.x_pixel;
}

/// The pixels of a tile of 4 x 4 results, of all planes that they see.
struct Pixels {
  static constexpr int n = Four::kInputs, m = Four::kResults;
  const WinogradRun& run;
  Place place;

  float size(int i, int j) const {
    Squares squares;
    const ConvProblem& p = run.problem;
    for (std::int64_t tap = 0; tap < p.kernel_d; ++tap) {
      const float* x =
          pixel_at(run, place.image, place.plane - p.front + tap, place.row - p.top + i, place.column - p.left + j);
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

/// The tile of plane z of x, of the results at `place`. Gives whether one may see too little. What the next tile of the
/// row sees beside it is fetched meanwhile, since large images lie in L3 or DRAM (Zen 5, 64 channels of 256 x 256: the
/// layer 1.20 times as fast, and 1.33 times with what output_tile fetches; as before where images lie in L2).
template <class F>
bool input_tile(const WinogradRun& run, const Place& place, std::int64_t z, float* v) {
  constexpr int rows = F::Down::kInputs, columns = F::Along::kInputs, next = F::Along::kStep;
  const ConvProblem& p = run.problem;
  const std::int64_t row = place.row * p.stride_h - p.top, column = place.column * p.stride_w - p.left;
  const float* x = p.x + (((place.image * p.depth + z) * p.height + row) * p.width + column) * run.x_pixel;
  const std::int64_t row_step = p.width * run.x_pixel;
  bool inside[rows][columns];
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j)
      inside[i][j] = row + i >= 0 && row + i < p.height && column + j >= 0 && column + j < p.width;
  }
  TileSquares squares;
  vectors(
      static_cast<std::size_t>(p.channels), [&](std::size_t c, auto part) __attribute__((always_inline)) {
        Floats half[columns][rows];  // [column][frequency]
        for (int j = 0; j < columns; ++j) {
          Floats d[rows];
          for (int i = 0; i < rows; ++i)
            d[i] = inside[i][j] ? load(x + i * row_step + j * run.x_pixel + c, part) : Floats{};
          for (int i = 0; i < rows && j + next >= columns; ++i)
            __builtin_prefetch(x + i * row_step + (j + next) * run.x_pixel + c);
          if constexpr (F::kCancels) squares.add(d, j);
          F::Down::input(d, 1, half[j]);
        }
        for (int i = 0; i < rows; ++i) {
          Floats out[columns];
          F::Along::input(&half[0][i], rows, out);
          for (int j = 0; j < columns; ++j) store(v + (i * columns + j) * run.v_step + c, out[j], part);
        }
      });
  return F::kCancels && squares.may_be_far(p.rows - place.row, p.columns - place.column);
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
  const std::int64_t window_taps = p.kernel_h * p.kernel_w, taps = window_taps * p.kernel_d;
  const std::int64_t channels = kMostWinogradTaps / p.kernel_d;
  float window[9 * kMostWinogradTaps], sums[kLanes] = {};
  for (std::int64_t c = 0; c < p.channels; c += channels) {
    const std::int64_t count = p.channels - c < channels ? p.channels - c : channels;
    bool any = !skipped;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const float* from = pixel_at(run, place.image, place.plane - p.front + tap / window_taps,
                                   place.row * p.stride_h - p.top + tap % window_taps / p.kernel_w,
                                   place.column * p.stride_w - p.left + tap % p.kernel_w);
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
  constexpr int rows = F::Down::kInputs, columns = F::Along::kInputs;
  constexpr int m = F::Down::kResults, n = F::Along::kResults;
  const ConvProblem& p = run.problem;
  const std::int64_t high = p.rows - place.row, wide = p.columns - place.column;
  const std::int64_t at =
      (((place.image * p.planes + place.plane) * p.rows + place.row) * p.columns + place.column) * run.y_pixel;
  const std::int64_t row_step = p.columns * run.y_pixel;
  const ops::Residual residual = p.residual;
  vectors(
      static_cast<std::size_t>(p.filters), [&](std::size_t k, auto part) __attribute__((always_inline)) {
        const auto f = activation_from(activation, k);
        const Floats bias = load(p.bias + k);  // rounded up to whole vectors
        Floats half[columns][m];               // [frequency of columns][row]
        for (int j = 0; j < columns; ++j) {
          Floats d[rows];
          for (int i = 0; i < rows; ++i) d[i] = load(products + (i * columns + j) * run.products_step + k, part);
          F::Down::output(d, 1, half[j]);
        }
        Floats out[m][n];
        for (int i = 0; i < m; ++i) F::Along::output(&half[0][i], m, out[i]);
        const bool spoiled = any_spoiled<m * n>(out[0]);
        const std::uint32_t left = spoiled ? ~std::uint32_t{0} : apart;
        for (int i = 0; i < m && i < high; ++i) {
          for (int j = 0; j < n && j < wide; ++j) {
            const std::int64_t pixel = at + i * row_step + j * run.y_pixel + static_cast<std::int64_t>(k);
            if (left != 0 && (left >> (i * n + j) & 1) != 0)
              out[i][j] = direct(run, {place.image, place.plane, place.row + i, place.column + j},
                                 static_cast<std::int64_t>(k), !spoiled);
            Floats y = out[i][j] + bias;
            if (residual == ops::Residual::before) y += load(p.added + pixel, part);
            y = f(y);
            with_late_residual(residual, [&](auto join) { y = join(y, load(p.added + pixel, part)); });
            store(p.y + pixel, y, part);
            // Of the next tile.
            __builtin_prefetch(p.y + pixel + n * run.y_pixel);
            if (p.added) __builtin_prefetch(p.added + pixel + n * run.y_pixel);
          }
        }
      });
}

void winograd_input(const WinogradRun& run, std::int64_t first, std::int64_t last, float* v, bool* far) {
  bool (*tile)(const WinogradRun&, const Place&, std::int64_t, float*) = nullptr;
  with_form(run.form, [&tile](auto form) { tile = input_tile<decltype(form)>; });
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
  return any ? Pixels{run, place}.find_apart() : 0;
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
        with_form(run.form, [&](auto form) { output_tile<decltype(form)>(run, place, from, apart, f); });
      }
    }
  };
  const ConvProblem& p = run.problem;
  if (p.slopes) return tiles(Bends{p.slopes, p.activation});
  with_activation(p.activation, tiles);
}

}  // namespace
}  // namespace modelflow::cpu
