// Where the lines, and the pixels under each position of the window, lie in a copy of an image.
#include "backends/cpu/conv/lines.h"

#include <algorithm>

namespace modelflow::cpu {
namespace {

bool reads_pixels(const ConvGeometry& g) {
  return g.kernel_h == 1 && g.kernel_w == 1 && g.stride_h == 1 && g.stride_w == 1 && g.top == 0 && g.left == 0 &&
         g.rows == g.height && g.columns == g.width;
}

std::size_t find(const std::vector<ConvLines::Grid>& grids, std::int64_t row, std::int64_t column) {
  const auto same = [&](const ConvLines::Grid& grid) { return grid.row == row && grid.column == column; };
  return static_cast<std::size_t>(std::ranges::find_if(grids, same) - grids.begin());
}

}  // namespace

ConvLines::ConvLines(const ConvGeometry& given) : g(given) {
  const bool gathered = gathers(g.channels, g.kernel_w, g.dilation_w);
  if (gathered) {
    g.channels *= g.kernel_w;
    g.kernel_w = g.stride_w = 1;
    g.width = g.columns;
    g.left = 0;
  }
  is_product = !gathered && reads_pixels(g);
  if (is_product) {
    g.height = g.rows = g.batch * g.rows * g.columns;
    g.width = g.columns = g.batch = 1;
  }
  reach = (g.kernel_h - 1) * g.dilation_h / g.stride_h;
  pitch = g.columns + (g.kernel_w - 1) * g.dilation_w / g.stride_w;
  for (std::int64_t h = 0; h < g.kernel_h; ++h) {
    for (std::int64_t w = 0; w < g.kernel_w; ++w) {
      const std::int64_t row = h * g.dilation_h % g.stride_h, column = w * g.dilation_w % g.stride_w;
      if (find(grids, row, column) == grids.size()) grids.push_back({row, column});
    }
  }
}

std::vector<std::size_t> ConvLines::taps(std::int64_t lines, std::size_t pixel_bytes) const {
  std::vector<std::size_t> taps;
  for (std::int64_t h = 0; h < g.kernel_h; ++h) {
    for (std::int64_t w = 0; w < g.kernel_w; ++w) {
      const std::int64_t row = h * g.dilation_h, column = w * g.dilation_w;
      const auto at = static_cast<std::size_t>(row / g.stride_h * pitch + column / g.stride_w);
      taps.push_back((find(grids, row % g.stride_h, column % g.stride_w) * grid_pixels(lines) + at) * pixel_bytes);
    }
  }
  return taps;
}

}  // namespace modelflow::cpu
