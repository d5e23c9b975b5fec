// One task of a depthwise convolution: strips of neighbouring results in registers. For files named so, see vector.h.
#pragma once

#include "backends/cpu/conv/group_strips.h"
#include "backends/cpu/conv/layout.h"

namespace modelflow::cpu {
namespace {

/// T results: every vector of x is loaded once per kernel row and used by each result that covers it. Measured: loads,
/// not products, would bound the simple loop. With `Edge` taps may lie outside of x, to the left or right.
template <int W, int S, int T, bool Edge = false>
void run_strip(const Strip& s, const Epilogue& epilogue) {
  for_channels(
      s, [&](std::int64_t c, auto part) __attribute__((always_inline)) {
        Floats acc[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) acc[t] = load(s.bias + c);
        const float* x = s.x + c;
        const float* w = s.w + c;
        for (std::int64_t i = 0; i < s.taps_h; ++i, x += s.x_row, w += s.w_row) {
          Floats weights[W];
#pragma GCC unroll 8
          for (int k = 0; k < W; ++k) weights[k] = load(w + k * s.w_tap);
#pragma GCC unroll 32
          for (int j = 0; j < (T - 1) * S + W; ++j) {
            if (Edge && (j < s.from || j >= s.to)) continue;
            const Floats v = load(x + j * s.x_column, part);
#pragma GCC unroll 8
            for (int t = 0; t < T; ++t) {
              const int k = j - t * S;
              if (k >= 0 && k < W) acc[t] += v * weights[k < 0 || k >= W ? 0 : k];
            }
          }
        }
        store_strip(acc, s, c, 0, part, epilogue);
      });
}

/// T results of any kernel, dilation and stride whose taps all lie inside of x: every result loads its own numbers, but
/// their sums do not wait for each other.
template <int T>
void run_any_strip(const Strip& s, const Epilogue& epilogue) {
  for_channels(
      s, [&](std::int64_t c, auto part) __attribute__((always_inline)) {
        Floats acc[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) acc[t] = load(s.bias + c);
        for (std::int64_t i = 0; i < s.taps_h; ++i) {
          const float* x = s.x + i * s.x_row + c;
          const float* w = s.w + i * s.w_row + c;
          for (std::int64_t j = 0; j < s.taps_w; ++j, x += s.x_column, w += s.w_tap) {
            const Floats weight = load(w);
#pragma GCC unroll 8
            for (int t = 0; t < T; ++t) acc[t] += load(x + t * s.x_step, part) * weight;
          }
        }
        store_strip(acc, s, c, 0, part, epilogue);
      });
}

StripFunction any_strip(std::int64_t results) {
  static constexpr StripFunction kBySize[kStrip] = {run_any_strip<1>, run_any_strip<2>, run_any_strip<3>,
                                                    run_any_strip<4>, run_any_strip<5>, run_any_strip<6>,
                                                    run_any_strip<7>, run_any_strip<8>};
  return kBySize[results - 1];
}

/// What run_strip does, for two rows of results, one under the other (stride 1): they share K of the K + 1 rows that
/// they read. The L2 cache feeds one row of a 5 x 5 kernel too slowly.
template <int K, int S, int T>
void run_strip_pair(const Strip& s, const Epilogue& epilogue) {
  for_channels(
      s, [&](std::int64_t c, auto part) __attribute__((always_inline)) {
        Floats upper[T], lower[T], weights[K], above[K];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) upper[t] = lower[t] = load(s.bias + c);
        const float* x = s.x + c;
        const float* w = s.w + c;
#pragma GCC unroll 8
        for (int i = 0; i <= K; ++i, x += s.x_row, w += s.w_row) {
#pragma GCC unroll 8
          for (int k = 0; k < K; ++k) {
            above[k] = weights[k];
            if (i < K) weights[k] = load(w + k * s.w_tap);
          }
#pragma GCC unroll 32
          for (int j = 0; j < (T - 1) * S + K; ++j) {
            const Floats v = load(x + j * s.x_column, part);
#pragma GCC unroll 8
            for (int t = 0; t < T; ++t) {
              const int k = j - t * S;
              if (k < 0 || k >= K) continue;
              if (i < K) upper[t] += v * weights[k];
              if (i > 0) lower[t] += v * above[k];
            }
          }
        }
        store_strip(upper, s, c, 0, part, epilogue);
        store_strip(lower, s, c, s.y_row, part, epilogue);
      });
}

enum class Reach { inside, two_rows, edge };

/// Null where two rows of sums do not fit in registers.
template <int W, int S, int T>
constexpr StripFunction pair_of() {
  if constexpr (kWide)
    return run_strip_pair<W, S, T>;
  else
    return nullptr;
}

template <int W, int S>
StripFunction strip_of(std::int64_t results, Reach reach) {
  static constexpr StripFunction kBySize[3][kStrip] = {
      {run_strip<W, S, 1>, run_strip<W, S, 2>, run_strip<W, S, 3>, run_strip<W, S, 4>, run_strip<W, S, 5>,
       run_strip<W, S, 6>, run_strip<W, S, 7>, run_strip<W, S, 8>},
      {pair_of<W, S, 1>(), pair_of<W, S, 2>(), pair_of<W, S, 3>(), pair_of<W, S, 4>(), pair_of<W, S, 5>(),
       pair_of<W, S, 6>(), pair_of<W, S, 7>(), pair_of<W, S, 8>()},
      {run_strip<W, S, 1, true>, run_strip<W, S, 2, true>, run_strip<W, S, 3, true>, run_strip<W, S, 4, true>,
       run_strip<W, S, 5, true>, run_strip<W, S, 6, true>, run_strip<W, S, 7, true>, run_strip<W, S, 8, true>}};
  return kBySize[static_cast<int>(reach)][results - 1];
}

/// Null when there is none in which results share what they load. Two rows only for square kernels, stride_h 1.
StripFunction strip_function(const DepthwiseRun& run, std::int64_t results, Reach reach) {
  const ConvProblem& p = run.problem;
  if (run.group > 1) return group_strip(run, results);
  if (p.dilation_w != 1 && p.stride_w != 1) return nullptr;
  if (p.kernel_w == 1 && p.stride_w == 1) return strip_of<1, 1>(results, reach);
  if (p.kernel_w == 3) {
    if (p.stride_w == 1) return strip_of<3, 1>(results, reach);
    if (p.stride_w == 2) return strip_of<3, 2>(results, reach);
  }
  if (p.kernel_w == 5) {
    if (p.stride_w == 1) return strip_of<5, 1>(results, reach);
    if (p.stride_w == 2) return strip_of<5, 2>(results, reach);
  }
  if (p.kernel_w == 7) {
    if (p.stride_w == 1) return strip_of<7, 1>(results, reach);
    if (p.stride_w == 2) return strip_of<7, 2>(results, reach);
  }
  return nullptr;
}

/// x as the strips see it: the image itself, whose rows and columns outside [first, last) do not exist, or a copy with
/// the padding around it.
struct Source {
  Band band;
  std::int64_t first_row, last_row, first_column, last_column;  ///< in coordinates of x
};

Source source_of(const ConvProblem& p, const ConvBlock& block, float* scratch) {
  const std::int64_t row = p.width * p.channels;
  if (p.x_last) return {{p.x + block.image * p.height * row, row, p.channels, 0}, 0, p.height, 0, p.width};
  const BandShape s = band_shape(p, block, false);
  Band band = copy_band(p, block, s, p.channels, scratch);
  band.data -= s.first_row * band.row + s.first_column * band.pixel;
  return {band, s.first_row, s.first_row + s.rows, s.first_column, s.first_column + s.columns};
}

/// Every channel as often as it has filters (a channel multiplier): what the block reads, each result's channel beside
/// that of its neighbour.
Source repeat_channels(const ConvProblem& p, const ConvBlock& block, const Source& x, float* to) {
  const BandShape s = band_shape(p, block, false);
  const auto larger = [](std::int64_t a, std::int64_t b) { return a > b ? a : b; };
  const auto smaller = [](std::int64_t a, std::int64_t b) { return a < b ? a : b; };
  Source made{{},
              larger(s.first_row, x.first_row),
              smaller(s.first_row + s.rows, x.last_row),
              larger(s.first_column, x.first_column),
              smaller(s.first_column + s.columns, x.last_column)};
  const std::int64_t width = made.last_column - made.first_column, times = p.filters / p.channels;
  made.band = {to - (made.first_row * width + made.first_column) * p.filters, width * p.filters, p.filters, 0};
  Floats lanes;
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = static_cast<float>(i) + 0.5F;
  for (std::int64_t c = 0; c < p.filters; c += kLanes) {
    const std::int64_t first = c / times;
    const Floats place = lanes + static_cast<float>(c % times);
    const Ints order = __builtin_convertvector(place * (1 / static_cast<float>(times)), Ints);
    const auto left = [](std::int64_t n) { return Rest(static_cast<std::size_t>(n < kFloats ? n : kFloats)); };
    const Rest in = left(p.channels - first), out = left(p.filters - c);
    for (std::int64_t i = made.first_row; i < made.last_row; ++i) {
      const float* from = x.band.data + i * x.band.row + made.first_column * x.band.pixel + first;
      float* at = to + (i - made.first_row) * made.band.row + c;
      for (std::int64_t j = 0; j < width; ++j, from += x.band.pixel, at += p.filters)
        store(at, picked(load(from, in), order), out);
    }
  }
  return made;
}

/// Taps [from, to) of a kernel whose first tap is at `at` lie inside [first, last).
struct Taps {
  std::int64_t from, to;
};

Taps taps_inside(std::int64_t at, std::int64_t kernel, std::int64_t dilation, std::int64_t first, std::int64_t last) {
  Taps t{0, kernel};
  while (t.from < kernel && at + t.from * dilation < first) ++t.from;
  while (t.to > t.from && at + (t.to - 1) * dilation >= last) --t.to;
  return t;
}

struct RowTask {
  const DepthwiseRun& run;
  const Source& source;
  const Epilogue& epilogue;
};

/// Columns from a result to the next one of its strip: with dilations, neighbours read nothing in common. With a larger
/// stride too they stay neighbours, and run_any_strip takes them.
std::int64_t strip_step(const ConvProblem& p) { return p.stride_w == 1 ? p.dilation_w : 1; }

/// What strips leave: the activation, and a residual behind it.
void activate_results(const RowTask& task, const Strip& s, std::int64_t results) {
  const bool joined = s.y_pixel == s.channels;
  const auto count = static_cast<std::size_t>(joined ? results * s.channels : s.channels);
  for (std::int64_t at = 0; at < results * s.y_pixel; at += joined ? results * s.y_pixel : s.y_pixel) {
    float* y = s.y + at;
    activate(task.epilogue.activation, y, y, count);
    with_late_residual(task.epilogue.residual, [&](auto f) {
      vectors(count, [&](std::size_t i, auto part) {
        store(y + i, f(load(y + i, part), load(s.added + at + i, part)), part);
      });
    });
  }
}

MODELFLOW_INLINE void finish(const RowTask& task, const Strip& s, std::int64_t results) {
  if (!runs_in_registers(task.epilogue.activation.kind)) activate_results(task, s, results);
}

/// Results of one row some of whose taps lie outside of x, one by one; the first one begins at column `left` of x.
__attribute__((noinline)) void run_singles(const RowTask& task, Strip s, std::int64_t left, std::int64_t count) {
  const ConvProblem& p = task.run.problem;
  const float *x = s.x, *weights = s.w;
  for (; count > 0; --count, left += p.stride_w * strip_step(p)) {
    const Taps w = taps_inside(left, p.kernel_w, p.dilation_w, task.source.first_column, task.source.last_column);
    s.taps_w = w.to - w.from;
    s.x = x + w.from * s.x_column;
    s.w = weights + w.from * s.w_tap;
    single(task.run.group)(s, task.epilogue);
    finish(task, s, 1);
    x += s.x_step, s.y += s.y_pixel;
    if (s.added) s.added += s.y_pixel;
  }
}

/// `count` results of one row, or of two, from a column on. `s` is a copy of `row` that goes from strip to strip: a new
/// one for each, whose parts were just written, would wait for them as long as a strip of few channels takes.
void run_results(const RowTask& task, const Strip& row, Strip& s, bool pair, std::int64_t from, std::int64_t count,
                 std::int64_t column0) {
  const ConvProblem& p = task.run.problem;
  const Source& source = task.source;
  const std::int64_t step = strip_step(p), left = from * p.stride_w - p.left, room = source.last_column - left;
  const auto places = [step](std::int64_t columns) { return step == 1 ? columns : ceil_div(columns, step); };
  s.from = left < source.first_column ? places(source.first_column - left) : 0;
  s.to = places(room);
  const bool inside = s.from == 0 && (count - 1) * p.stride_w * step + (p.kernel_w - 1) * p.dilation_w < room;
  const Reach reach = !inside ? Reach::edge : pair ? Reach::two_rows : Reach::inside;
  StripFunction strip = strip_function(task.run, count, reach);
  s.x = row.x + left * source.band.pixel;
  s.y = row.y + (from - column0) * p.filters;
  s.added = row.added ? row.added + (from - column0) * p.filters : nullptr;
  if (!strip && (!inside || task.run.group > 1)) return run_singles(task, s, left, count);
  if (!strip) strip = any_strip(count);
  for (int i = 0; i < (pair ? 2 : 1); ++i) {
    if (i == 0 || reach != Reach::two_rows) strip(s, task.epilogue);
    finish(task, s, count);
    s.x += source.band.row, s.y += s.y_row;
    if (s.added) s.added += s.y_row;
  }
}

/// The lines of results that are written next, some rows below: in a session they are mostly neither in L2 nor next to
/// one another, and the machine asks for them too late (Zen 5, 64 channels over 112 x 112 pixels behind the layer
/// before: 310 -> 190 us; the same layer again and again, from L3: 113 -> 128 us).
void fetch_results(const float* from, std::int64_t floats) {
  for (std::int64_t i = 0; i < floats; i += 16) asm volatile("prefetchw %0" ::"m"(from[i]));
}

/// One row of results, or two where that is possible; returns how many.
std::int64_t run_rows(const RowTask& task, const ConvBlock& block, std::int64_t row, Strip s) {
  const ConvProblem& p = task.run.problem;
  const Source& source = task.source;
  const std::int64_t top = row * p.stride_h - p.top;
  const Taps h = taps_inside(top, p.kernel_h, p.dilation_h, source.first_row, source.last_row);
  s.taps_h = h.to - h.from, s.taps_w = p.kernel_w;
  s.x += (top + h.from * p.dilation_h) * source.band.row;
  s.w += h.from * s.w_row;
  const bool pair = kWide && task.run.group == 1 && strip_function(task.run, 1, Reach::inside) &&
                    p.kernel_h == p.kernel_w && p.stride_h == 1 && p.dilation_h == 1 && row + 1 < block.row1 &&
                    s.taps_h == p.kernel_h && top + p.kernel_h < source.last_row;
  const std::int64_t step = strip_step(p), rows = pair ? 2 : 1;
  Strip strip = s;
  for (std::int64_t phase = 0; phase < step && phase < block.columns(); ++phase) {
    const std::int64_t all = (block.columns() - phase + step - 1) / step, strips = (all + kStrip - 1) / kStrip;
    for (std::int64_t i = 0, done = 0, results; i < strips; ++i, done += results) {
      results = (all - done) / (strips - i);
      const std::int64_t column = phase + done * step, left = block.columns() - column;
      for (std::int64_t r = rows; r < 2 * rows && task.run.far && phase == 0 && row + r < block.row1; ++r)
        fetch_results(s.y + r * s.y_row + column * p.filters,
                      (results * step < left ? results * step : left) * p.filters);
      run_results(task, s, strip, pair, block.column0 + column, results, block.column0);
    }
  }
  return rows;
}

/// A channels-last result into channels-second y, with everything that has to wait for the residual.
void write_planes(const ConvProblem& p, const ConvBlock& b, const float* result) {
  const std::int64_t plane = p.rows * p.columns;
  const bool whole = b.columns() == p.columns;
  const std::int64_t pieces = whole ? 1 : b.rows(), pixels = whole ? b.rows() * b.columns() : b.columns();
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::int64_t at = b.image * p.filters * plane + (b.row0 + i) * p.columns + b.column0;
    transpose(result + i * pixels * p.filters, static_cast<std::size_t>(p.filters), p.y + at,
              static_cast<std::size_t>(plane), static_cast<std::size_t>(pixels), static_cast<std::size_t>(p.filters));
    if (!p.added) continue;
    for (std::int64_t f = 0; f < p.filters; ++f)
      finish_results(p, f, p.y + at + f * plane, p.added + at + f * plane, pixels);
  }
}

std::int64_t band_floats(const ConvProblem& p, const ConvBlock& block, std::int64_t channels) {
  const BandShape s = band_shape(p, block, false);
  return (s.rows * s.columns * channels + 15) / 16 * 16;
}

/// Of a copy of x, and of one in which channels are repeated.
struct BandSizes {
  std::int64_t copy, repeated;
  BandSizes(const ConvProblem& p, const ConvBlock& block)
      : copy(p.x_last ? 0 : band_floats(p, block, p.channels)),
        repeated(p.filters == p.channels ? 0 : band_floats(p, block, p.filters)) {}
};

std::size_t depthwise_scratch(const DepthwiseRun& run, const ConvBlock& block) {
  const ConvProblem& p = run.problem;
  const std::int64_t result = p.y_last ? 0 : block.rows() * block.columns() * p.filters;
  const BandSizes sizes(p, block);
  return static_cast<std::size_t>(sizes.copy + sizes.repeated + result) * sizeof(float);
}

void depthwise_block(const DepthwiseRun& run, const ConvBlock& block, std::byte* scratch) {
  const ConvProblem& p = run.problem;
  auto* memory = reinterpret_cast<float*>(scratch);
  const BandSizes sizes(p, block);
  Source source = source_of(p, block, memory);
  if (sizes.repeated > 0) source = repeat_channels(p, block, source, memory + sizes.copy);
  float* result = memory + sizes.copy + sizes.repeated;
  const bool late = !p.y_last && p.added;
  const Epilogue epilogue = late ? Epilogue{{}, ops::Residual::none} : Epilogue{p.activation, p.residual, p.slopes};
  Strip s{};
  s.x = source.band.data, s.w = run.weights, s.bias = p.bias;
  s.x_row = source.band.row * p.dilation_h, s.x_column = source.band.pixel * p.dilation_w;
  s.x_step = source.band.pixel * p.stride_w * strip_step(p);
  s.w_part = (p.filters + 15) / 16 * 16, s.w_tap = s.w_part * run.group, s.w_row = s.w_tap * p.kernel_w;
  s.channels = p.filters, s.y_pixel = p.filters * strip_step(p);
  s.y_row = (p.y_last ? p.columns : block.columns()) * p.filters;
  for (std::int64_t row = block.row0; row < block.row1;) {
    const std::int64_t at = ((block.image * p.rows + row) * p.columns + block.column0) * p.filters;
    s.y = p.y_last ? p.y + at : result + (row - block.row0) * block.columns() * p.filters;
    s.added = p.y_last && p.added ? p.added + at : nullptr;
    row += run_rows({run, source, epilogue}, block, row, s);
  }
  if (!p.y_last) write_planes(p, block, result);
}

}  // namespace
}  // namespace modelflow::cpu
