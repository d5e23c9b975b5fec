#include "backends/cpu/conv_rows_amx.h"

#include <cstring>

#include "backends/cpu/round_amx.h"

namespace modelflow::cpu {
namespace {

/// Output pixels one after the other.
struct Position {
  std::int64_t image, row, column;
  Position(const ConvGeometry& g, std::int64_t pixel)
      : image(pixel / (g.rows * g.columns)), row(pixel / g.columns % g.rows), column(pixel % g.columns) {}
  void advance(const ConvGeometry& g) {
    if (++column < g.columns) return;
    column = 0;
    if (++row < g.rows) return;
    row = 0, ++image;
  }
};

void round_window(const ConvGeometry& g, const float* x, const Position& at, std::byte* to) {
  const std::int64_t bytes = 2 * g.channels;
  for (std::int64_t h = 0; h < g.kernel_h; ++h) {
    const std::int64_t row = at.row * g.stride_h - g.top + h * g.dilation_h;
    const bool inside = row >= 0 && row < g.height;
    const float* line = x + (at.image * g.height + row) * g.width * g.channels;
    for (std::int64_t w = 0; w < g.kernel_w; ++w, to += bytes) {
      const std::int64_t column = at.column * g.stride_w - g.left + w * g.dilation_w;
      if (inside && column >= 0 && column < g.width)
        round_numbers(line + column * g.channels, static_cast<std::size_t>(g.channels), to);
      else
        std::memset(to, 0, static_cast<std::size_t>(bytes));
    }
  }
}

}  // namespace

void round_windows_amx(const ConvGeometry& g, const float* x, std::int64_t pixel0, const TilePanels& panels,
                       std::size_t begin, std::size_t end, std::byte* out) {
  const std::size_t row = tile_row(panels.row), whole = tile_steps(panels.row) * kTileBytes;
  Position at(g, pixel0 + static_cast<std::int64_t>(panels.begin(begin)));
  for (std::size_t panel = begin; panel < end; ++panel) {
    std::byte* to = out + panels.offset(panel);
    for (std::size_t r = panels.begin(panel); r < panels.begin(panel + 1); ++r, to += row, at.advance(g)) {
      round_window(g, x, at, to);
      std::memset(to + panels.row, 0, whole - panels.row);
    }
  }
}

}  // namespace modelflow::cpu
