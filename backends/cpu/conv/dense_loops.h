// One task of a dense convolution: its part of x is copied where it needs padding, tiles run over it, and the result is
// transposed where channels come second. For files named so, see vector.h.
#pragma once

#include "backends/cpu/conv/dense.h"
#include "backends/cpu/conv/layout.h"
#include "backends/cpu/conv/tile.h"

namespace modelflow::cpu {
namespace {

/// Where the result of a task is put together: y itself, or a channels-last buffer that is transposed into it.
struct Result {
  float* y;
  const float* added;
  std::ptrdiff_t pixel, row;
};

bool needs_padding(const ConvProblem& p, const ConvBlock& block) {
  const BandShape s = band_shape(p, block, true);
  return s.first_row < 0 || s.first_column < 0 || s.first_row + (s.rows - 1) * s.step_h >= p.height ||
         s.first_column + (s.columns - 1) * s.step_w >= p.width;
}

/// Pixels a multiple of 4 KiB apart share one set of the L1 cache; where a tile has many, a copy with some room between
/// them is cheaper.
bool shares_cache_sets(const ConvProblem& p, std::int64_t pixel) {
  return kTileRows[3] > 4 && pixel % 1024 == 0 && p.filters > 48;
}

bool reads_in_place(const ConvProblem& p, const ConvBlock& block) {
  return p.x_last && !p.pre_scale && !needs_padding(p, block) && !shares_cache_sets(p, p.channels * p.stride_w);
}

std::int64_t copied_pixel(const ConvProblem& p) {
  if (reads_planes(p.x_last, p.channels)) return 1;
  return p.channels % 512 == 0 ? p.channels + 16 : p.channels;
}

struct Sizes {
  std::int64_t segments, band, result;  ///< in floats (segments: int32)
};

std::int64_t round_up(std::int64_t n) { return (n + 15) / 16 * 16; }

std::int64_t filters_of(const DenseRun& run, const DenseTask& task) {
  const DensePanel& last = run.panels[task.panel1 - 1];
  return last.first + last.count - run.panels[task.panel0].first;
}

Sizes sizes(const DenseRun& run, const DenseTask& task) {
  const ConvProblem& p = run.problem;
  Sizes s{};
  s.segments = round_up(p.kernel_h * p.kernel_w * (reads_planes(p.x_last, p.channels) ? p.channels : 1));
  if (!reads_in_place(p, task.block)) {
    const BandShape shape = band_shape(p, task.block, true);
    s.band = round_up(shape.rows * shape.columns * (reads_planes(p.x_last, p.channels) ? p.channels : copied_pixel(p)));
  }
  if (!p.y_last) s.result = round_up(task.block.rows() * task.block.columns() * filters_of(run, task));
  return s;
}

/// What copy_band makes, of channels-last x as Relu(x * pre_scale + pre_shift), without padding.
Band copy_activated(const ConvProblem& p, const ConvBlock& block, const BandShape& s, std::int64_t pixel, float* to) {
  const float *scale = p.pre_scale, *shift = p.pre_shift;
  const auto channels = static_cast<std::size_t>(p.channels);
  for (std::int64_t i = 0; i < s.rows; ++i) {
    const float* row = p.x + (block.image * p.height + s.first_row + i * s.step_h) * p.width * p.channels;
    for (std::int64_t j = 0; j < s.columns; ++j) {
      const float* from = row + (s.first_column + j * s.step_w) * p.channels;
      float* at = to + (i * s.columns + j) * pixel;
      vectors(channels, [=](std::size_t c, auto part) {
        store(at + c, Relu{}(load(from + c, part) * load(scale + c, part) + load(shift + c, part)), part);
      });
    }
  }
  return {to, s.columns * pixel, pixel, 0};
}

Band band_of(const DenseRun& run, const ConvBlock& block, float* scratch) {
  const ConvProblem& p = run.problem;
  if (p.pre_scale) return copy_activated(p, block, band_shape(p, block, true), copied_pixel(p), scratch);
  if (!reads_in_place(p, block)) return copy_band(p, block, band_shape(p, block, true), copied_pixel(p), scratch);
  const std::int64_t row = p.width * p.channels;
  const BandShape s = band_shape(p, block, true);
  return {p.x + (block.image * p.height + s.first_row) * row + s.first_column * p.channels, row * s.step_h,
          p.channels * s.step_w, 0};
}

/// Offsets of the pieces of x that one output pixel reads, in the order of the packed weights; returns their length.
std::int64_t list_segments(const DenseRun& run, const Band& band, std::int32_t* offsets, std::int64_t& count) {
  const ConvProblem& p = run.problem;
  count = 0;
  const std::int64_t h = p.kernel_h == 1 ? 0 : p.dilation_h * band.row;
  const std::int64_t w = p.kernel_w == 1 ? 0 : p.dilation_w * band.pixel;
  const bool joined = p.kernel_w > 1 && w == (band.plane ? 1 : run.depth);
  for (std::int64_t i = 0; i < p.kernel_h; ++i) {
    for (std::int64_t c = 0; c < (band.plane ? p.channels : 1); ++c) {
      for (std::int64_t j = 0; j < (joined ? 1 : p.kernel_w); ++j)
        offsets[count++] = static_cast<std::int32_t>(i * h + j * w + c * band.plane);
    }
  }
  return (joined ? p.kernel_w : 1) * (band.plane ? 1 : run.depth);
}

Result result_of(const DenseRun& run, const DenseTask& task, float* result) {
  const ConvProblem& p = run.problem;
  const ConvBlock& b = task.block;
  const std::int64_t first = run.panels[task.panel0].first;
  if (p.y_last) {
    const std::int64_t at = ((b.image * p.rows + b.row0) * p.columns + b.column0) * p.filters + first;
    return {p.y + at, p.added ? p.added + at : nullptr, p.filters, p.columns * p.filters};
  }
  const std::int64_t filters = filters_of(run, task);
  return {result, nullptr, filters, b.columns() * filters};
}

/// A block for one panel: tile after tile, all pixels of a tile in one row.
struct Sweep {
  ConvBlock block;
  Result result;
  std::ptrdiff_t a_row;
  Epilogue epilogue;
  DensePanel panel;
  const float* next;       ///< the weights that come next, brought into L2 meanwhile
  std::int64_t next_size;  ///< in floats
  /// Where x is read for the first time: from what a tile reads to what it brings into L2 meanwhile; else 0.
  std::ptrdiff_t x_ahead;
  std::int64_t panel_floats;  ///< of weights: they stay near while all tiles of a block use them
};

/// The products that `first` names, for all tiles of the block.
void run_tiles(const Sweep& sweep, const Tile& first) {
  const int vectors = static_cast<int>(sweep.panel.vectors);
  const std::int64_t side = sweep.panel.side;
  const std::int64_t columns = sweep.block.columns(), tiles = (columns + kTileRows[vectors] - 1) / kTileRows[vectors];
  const std::int64_t size = columns / tiles, larger = columns % tiles;
  const TileFunction normal = tile_function(static_cast<int>(size), vectors, side);
  const TileFunction bigger = larger ? tile_function(static_cast<int>(size + 1), vectors, side) : normal;
  // Fetched evenly while all tiles are computed: in a burst they would wait for each other (ResNeXt-50 1.02x of a line
  // per step).
  const std::int64_t steps = first.segments * first.length / side;
  const std::int64_t all = sweep.block.rows() * tiles * steps, even = (sweep.next_size + all - 1) / all;
  const std::int64_t pace = even > 16 ? 16 : even;
  std::int64_t fetched = 0;
  const auto run = [&](TileFunction function, Tile& t, std::int64_t pixels, std::int64_t count) {
    for (std::int64_t now; count > 0; count -= now, t.advance(now * pixels)) {
      const bool fetch = !sweep.x_ahead && fetched < sweep.next_size;
      const std::int64_t left = fetch ? ceil_div(sweep.next_size - fetched, steps * pace) : count;
      now = left < count ? left : count;
      t.ahead = sweep.x_ahead ? t.a + sweep.x_ahead : fetch ? sweep.next + fetched : t.b;
      t.ahead_step = sweep.x_ahead ? pixels * t.a_step / steps + 1 : fetch ? pace : 0;
      t.ahead_tile = sweep.x_ahead ? pixels * t.a_step : t.ahead_step * steps;
      if (fetch) fetched += now * steps * pace;
      function(t, sweep.epilogue, now);
    }
  };
  for (std::int64_t r = 0; r < sweep.block.rows(); ++r) {
    Tile t = first;
    t.a += r * sweep.a_row;
    t.y += r * sweep.result.row;
    if (t.added) t.added += r * sweep.result.row;
    run(bigger, t, size + 1, larger);
    run(normal, t, size, tiles - larger);
  }
}

/// How many products a part of a panel has: all of them, or, when their weights would not stay near for the next tile,
/// whole segments, or vectors of channels within a segment.
std::int64_t part_size(const Sweep& sweep, const Tile& t) {
  const std::int64_t products = t.segments * t.length, width = sweep.panel.filters();
  const bool one_tile = sweep.block.rows() * sweep.block.columns() <= kTileRows[sweep.panel.vectors];
  if (one_tile || products * width <= sweep.panel_floats) return products;
  const std::int64_t most = sweep.panel_floats / width;
  const bool within = t.length > most;
  const std::int64_t all = within ? t.length : products, unit = within ? 16 : t.length;
  const std::int64_t parts = (all + most - 1) / most, each = (all + parts - 1) / parts;
  return (each + unit - 1) / unit * unit;
}

/// All products of a panel, in parts with the sums kept in y.
void run_panel(Sweep sweep, const Tile& whole) {
  const std::int64_t products = whole.segments * whole.length, size = part_size(sweep, whole);
  const float* next = sweep.next;
  const std::int64_t next_size = sweep.next_size;
  for (std::int64_t at = 0, count; at < products; at += count) {
    Tile t = whole;
    t.b += at * sweep.panel.filters();
    t.offsets += at / whole.length;
    if (size < whole.length) {
      const std::int64_t in = at % whole.length;
      count = in + size < whole.length ? size : whole.length - in;
      t.a += in, t.length = count, t.segments = 1;
    } else {
      count = at + size < products ? size : products - at;
      t.segments = count / whole.length;
    }
    t.resume = at > 0;
    t.pause = at + count < products;
    sweep.next = t.pause ? t.b + count * sweep.panel.filters() : next;
    sweep.next_size = t.pause ? size * sweep.panel.filters() : next_size;
    run_tiles(sweep, t);
  }
}

/// The buffer of a task into channels-second y, with everything that has to wait for the residual.
void write_planes(const DenseRun& run, const DenseTask& task, const float* result) {
  const ConvProblem& p = run.problem;
  const ConvBlock& b = task.block;
  const std::int64_t plane = p.rows * p.columns, filters = filters_of(run, task);
  const std::int64_t first = run.panels[task.panel0].first;
  const bool whole = b.columns() == p.columns;
  const std::int64_t pieces = whole ? 1 : b.rows(), pixels = whole ? b.rows() * b.columns() : b.columns();
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::int64_t at = (b.image * p.filters + first) * plane + (b.row0 + i) * p.columns + b.column0;
    transpose(result + i * pixels * filters, filters, p.y + at, plane, pixels, filters);
    if (!p.added) continue;
    for (std::int64_t f = 0; f < filters; ++f)
      finish_results(p, first + f, p.y + at + f * plane, p.added + at + f * plane, pixels);
  }
}

/// Rows or columns [from, to) of a block whose taps all lie inside x.
struct Inside {
  std::int64_t from, to;
};

Inside inside(std::int64_t first, std::int64_t last, std::int64_t stride, std::int64_t pad, std::int64_t reach,
              std::int64_t extent) {
  std::int64_t from = first, to = last;
  while (from < last && from * stride < pad) ++from;
  while (to > from && (to - 1) * stride - pad + reach >= extent) --to;
  return {from, to};
}

/// A wide block is cut into its middle, which reads x in place, and a frame of at least a tile, which needs the padding
/// and gets a copy: copying all of a large image takes a fifth of the time of its convolution. Returns how many.
int cut_frame(const ConvProblem& p, const ConvBlock& b, ConvBlock (&parts)[5]) {
  parts[0] = b;
  if (!p.x_last || shares_cache_sets(p, p.channels * p.stride_w)) return 1;
  constexpr std::int64_t kTile = kTileRows[3];
  const Inside rows = inside(b.row0, b.row1, p.stride_h, p.top, (p.kernel_h - 1) * p.dilation_h, p.height);
  const Inside columns = inside(b.column0, b.column1, p.stride_w, p.left, (p.kernel_w - 1) * p.dilation_w, p.width);
  const std::int64_t left = b.column0 + (columns.from - b.column0 + kTile - 1) / kTile * kTile;
  const std::int64_t right = b.column1 - (b.column1 - columns.to + kTile - 1) / kTile * kTile;
  if (rows.from >= rows.to || right - left < 2 * kTile) return 1;
  int count = 0;
  const auto add = [&](std::int64_t row0, std::int64_t row1, std::int64_t column0, std::int64_t column1) {
    if (row0 < row1 && column0 < column1) parts[count++] = {b.image, row0, row1, column0, column1};
  };
  add(b.row0, rows.from, b.column0, b.column1);
  add(rows.from, rows.to, b.column0, left);
  add(rows.from, rows.to, left, right);
  add(rows.from, rows.to, right, b.column1);
  add(rows.to, b.row1, b.column0, b.column1);
  return count;
}

/// Weights that no panel before them could bring into L2, up to 32 KiB of them in a burst
/// (Zen 5, 672 to 672 channels over 7 x 7 pixels, weights in DRAM: 1.03x; 16 to 128 KiB are alike).
void fetch_first(const float* weights, std::int64_t count) {
  constexpr std::int64_t kMost = 8 << 10;
  for (std::int64_t i = 0; i < count && i < kMost; i += 16)
    _mm_prefetch(reinterpret_cast<const char*>(weights + i), _MM_HINT_T1);
}

void run_part(const DenseRun& run, const DenseTask& task, std::byte* scratch) {
  const ConvProblem& p = run.problem;
  const ConvBlock& block = task.block;
  const Sizes s = sizes(run, task);
  auto* offsets = reinterpret_cast<std::int32_t*>(scratch);
  auto* memory = reinterpret_cast<float*>(scratch) + s.segments;
  // What fits in L2 is there: it was just written.
  const bool far = reads_in_place(p, block) && p.batch * p.height * p.width * p.channels > run.near_floats;
  const Band band = band_of(run, block, memory);
  const Result result = result_of(run, task, memory + s.band);
  // Without a channels-last residual at hand, a result for planes gets its residual and activation at the end.
  const bool late = !p.y_last && p.added;
  Epilogue epilogue = late ? Epilogue{{}, ops::Residual::none} : Epilogue{p.activation, p.residual};
  const std::int64_t stride_w = p.kernel_w == 1 ? 1 : p.stride_w, stride_h = p.kernel_h == 1 ? 1 : p.stride_h;
  Tile tile{};
  tile.a_step = stride_w * band.pixel;
  tile.offsets = offsets;
  tile.length = list_segments(run, band, offsets, tile.segments);
  tile.y_step = result.pixel;
  const std::int64_t first = run.panels[task.panel0].first, products = tile.segments * tile.length;
  for (std::int64_t i = task.panel0; i < task.panel1; ++i) {
    const DensePanel& panel = run.panels[i];
    tile.a = band.data + panel.channel;
    tile.b = run.weights + panel.offset;
    tile.bias = p.bias + panel.first;
    if (p.slopes) epilogue.slopes = p.slopes + panel.first;
    tile.y = result.y + panel.first - first;
    tile.added = result.added ? result.added + panel.first - first : nullptr;
    const std::int64_t last_lanes = (panel.count - 1) % kFloats + 1;
    tile.last = Rest(static_cast<std::size_t>(last_lanes));
    tile.whole = last_lanes == kFloats;
    const bool last = i + 1 == task.panel1;
    const bool first_reader = i == task.panel0 || panel.channel != run.panels[i - 1].channel;
    // Rows come one after the other, or there is one long row.
    const std::ptrdiff_t below = (stride_h + (p.kernel_h - 1) * p.dilation_h) * band.row;
    const std::ptrdiff_t x_ahead = p.rows > 1 ? below : 2 * tile.a_step * kTileRows[panel.vectors];
    if (i == task.panel0) fetch_first(tile.b, panel.filters() * products);
    run_panel({block, result, stride_h * band.row, epilogue, panel, tile.b + panel.filters() * products,
               last ? 0 : run.panels[i + 1].filters() * products, far && first_reader ? x_ahead : 0, run.panel_floats},
              tile);
  }
  if (!p.y_last) write_planes(run, task, memory + s.band);
}

std::size_t dense_scratch(const DenseRun& run, const DenseTask& task) {
  const Sizes s = sizes(run, task);
  return static_cast<std::size_t>(s.segments + s.band + s.result) * sizeof(float);
}

void dense_block(const DenseRun& run, const DenseTask& task, std::byte* scratch) {
  ConvBlock parts[5];
  const int count = cut_frame(run.problem, task.block, parts);
  for (int i = 0; i < count; ++i) run_part(run, {parts[i], task.panel0, task.panel1}, scratch);
}

}  // namespace
}  // namespace modelflow::cpu
