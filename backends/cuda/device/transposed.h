// What a block of a transposed convolution computes: a tile of one of its products, the pixels and weights that it
// gathers for it, and where the results lie.
#pragma once

#include "backends/cuda/device/grid.h"
#include "backends/cuda/launches/transposed.h"

namespace modelflow::cuda {

/// Where the tiles of each part begin among all that a grid has.
struct TransposedTiles {
  std::int64_t first[TransposedPart::kMost + 1];
};

inline TransposedTiles tiles_of(const ConvTransposeLaunch& c, int rows, int columns) {
  TransposedTiles tiles = {};
  for (int i = 0; i < parts_of(c); ++i) tiles.first[i + 1] = tiles.first[i] + tiles_of(c, part_of(c, i), rows, columns);
  return tiles;
}

/// Pixels and weights that meet at one place of the depth: how far they are from those of its first, the pixel along
/// each axis and both in numbers.
struct TransposedTap {
  std::int32_t d, h, w, weight;
  std::int64_t pixel;
};

/// The tile of this block, the same for all of its threads. Without a row behind the last one.
struct TransposedTile {
  TransposedPart part;
  std::int64_t rows = 0, row0 = 0;
  std::int32_t columns, column0, depth;

  __device__ TransposedTile(const ConvTransposeLaunch& c, const TransposedTiles& tiles, int height, int width) {
    const std::int64_t block = block_of_grid();
    const int parts = parts_of(c);
    int i = 0;
    while (i < parts && block >= tiles.first[i + 1]) ++i;
    if (i == parts) return;
    part = part_of(c, i);
    rows = rows_of(c, part), columns = columns_of(c, part), depth = depth_of(c, part);
    const std::int64_t down = ceil_div(rows, height), tile = block - tiles.first[i], across = tile / down;
    row0 = (tile - across * down) * height;
    column0 = static_cast<std::int32_t>(across) * width;
  }

  __device__ TransposedTap tap(const ConvTransposeLaunch& c, std::int32_t k) const {
    const std::int32_t place = depth == c.channels ? 0 : k / c.channels, channel = k - place * c.channels;
    const std::int32_t line = place / part.w.taps, plane = line / part.h.taps;
    TransposedTap tap = {plane, line - plane * part.h.taps, place - line * part.w.taps, 0, 0};
    const auto of_window = [](const TransposedAxis& axis, const TransposedGroup& group, std::int32_t i) {
      return group.nearest + axis.stride * (group.taps - 1 - i);
    };
    const std::int32_t in_window =
        (of_window(c.axis[0], part.d, tap.d) * c.axis[1].kernel + of_window(c.axis[1], part.h, tap.h)) *
            c.axis[2].kernel +
        of_window(c.axis[2], part.w, tap.w);
    tap.weight = in_window * c.filters * c.channels + channel;
    tap.pixel = ((tap.d * c.axis[1].in + tap.h) * c.axis[2].in + tap.w) * c.channels + channel;
    return tap;
  }
};

/// Lines of a tile, rows or columns, in pieces that the threads of a block share: each has the same piece of every
/// line(i), i < kEach.
template <int lines, int pieces, int threads>
struct SharedLines {
  static constexpr int kEach = lines * pieces / threads;
  __device__ static int line(int i) { return (static_cast<int>(threadIdx.x) + i * threads) / pieces; }
  __device__ static int piece() { return static_cast<int>(threadIdx.x) % pieces; }
};

/// The pixels that rows see. Where their results lie stands in `y` afterwards, -1 for rows that there are not.
template <class Lines>
struct SeenPixels {
  std::int64_t at[Lines::kEach], d[Lines::kEach], h[Lines::kEach], w[Lines::kEach];  ///< of the first tap

  __device__ SeenPixels(const ConvTransposeLaunch& c, const TransposedTile& tile, std::int64_t* y) {
    constexpr std::int64_t kFarAway = -(std::int64_t{1} << 40);
    const TransposedPart& part = tile.part;
    const auto result = [](const TransposedAxis& axis, const TransposedGroup& group, std::int64_t v) {
      return axis.stride * v + group.first;
    };
#pragma unroll
    for (int i = 0; i < Lines::kEach; ++i) {
      const std::int64_t row = tile.row0 + Lines::line(i);
      const std::int64_t line = row / part.w.places, plane = line / part.h.places, image = plane / part.d.places;
      const std::int64_t v_d = plane - image * part.d.places, v_h = line - plane * part.h.places;
      const std::int64_t v_w = row - line * part.w.places;
      const std::int64_t first = v_d + part.d.shift;
      d[i] = row < tile.rows ? first : kFarAway, h[i] = v_h + part.h.shift, w[i] = v_w + part.w.shift;
      at[i] = (((image * c.axis[0].in + first) * c.axis[1].in + h[i]) * c.axis[2].in + w[i]) * c.channels;
      if (Lines::piece() != 0) continue;
      const std::int64_t y_line =
          (image * c.axis[0].out + result(c.axis[0], part.d, v_d)) * c.axis[1].out + result(c.axis[1], part.h, v_h);
      y[Lines::line(i)] = row < tile.rows ? (y_line * c.axis[2].out + result(c.axis[2], part.w, v_w)) * c.filters : -1;
    }
  }

  /// Where in x that number lies; -1 for none.
  __device__ std::int64_t find(const ConvTransposeLaunch& c, int i, const TransposedTap& tap) const {
    const auto inside = [](std::int64_t place, std::int64_t extent) { return place >= 0 && place < extent; };
    return inside(d[i] + tap.d, c.axis[0].in) && inside(h[i] + tap.h, c.axis[1].in) &&
                   inside(w[i] + tap.w, c.axis[2].in)
               ? at[i] + tap.pixel
               : -1;
  }
};

/// The weights of columns. How far results lie from that of their row stands in `y` afterwards.
template <class Lines>
struct TurnedWeights {
  std::int64_t at[Lines::kEach];  ///< -1: there is no such column

  __device__ TurnedWeights(const ConvTransposeLaunch& c, const TransposedTile& tile, std::int64_t* y) {
    const TransposedPart& part = tile.part;
#pragma unroll
    for (int i = 0; i < Lines::kEach; ++i) {
      const std::int32_t column = tile.column0 + Lines::line(i), place = column / c.filters;
      const std::int32_t filter = column - place * c.filters, line = place / part.w.size, n_d = line / part.h.size;
      const std::int64_t n_h = line - n_d * part.h.size, n_w = place - line * part.w.size;
      const std::int64_t in_window = (n_d * c.axis[1].kernel + n_h) * c.axis[2].kernel + n_w;
      at[i] = column < tile.columns ? (in_window * c.filters + filter) * c.channels : -1;
      if (Lines::piece() == 0)
        y[Lines::line(i)] = ((n_d * c.axis[1].out + n_h) * c.axis[2].out + n_w) * c.filters + filter;
    }
  }

  __device__ std::int64_t find(const ConvTransposeLaunch&, int i, const TransposedTap& tap) const {
    return at[i] < 0 ? -1 : at[i] + tap.weight;
  }
};

}  // namespace modelflow::cuda
