#include <cstring>

#include "backends/cpu/conv_lines.h"
#include "backends/cpu/round_amx.h"

namespace modelflow::cpu {
namespace {

template <class T>
void copy_lines(const ConvLines& l, const T* x, std::int64_t begin, std::int64_t end, std::int64_t lines,
                std::size_t pixel_bytes, std::byte* out) {
  const ConvGeometry& g = l.g;
  const auto channels = static_cast<std::size_t>(g.channels);
  const std::size_t whole = tile_steps(2 * channels) * kTileBytes;
  for (const ConvLines::Grid& grid : l.grids) {
    std::byte* to = out;
    for (std::int64_t line = begin; line < end + l.reach; ++line) {
      const std::int64_t row = line * g.stride_h + grid.row - g.top;
      const bool inside = row >= 0 && row < g.height;
      std::int64_t column = grid.column - g.left;
      for (std::int64_t i = 0; i < l.pitch; ++i, column += g.stride_w, to += pixel_bytes) {
        if (inside && column >= 0 && column < g.width)
          tile_row_of(x + (row * g.width + column) * g.channels, channels, whole, to);
        else
          std::memset(to, 0, whole);
      }
    }
    out += l.grid_pixels(lines) * pixel_bytes;
  }
}

}  // namespace

void copy_lines_amx(const ConvLines& l, const void* x, bool bf16, std::int64_t begin, std::int64_t end,
                    std::int64_t lines, std::size_t pixel_bytes, std::byte* out) {
  if (bf16) return copy_lines(l, static_cast<const std::uint16_t*>(x), begin, end, lines, pixel_bytes, out);
  copy_lines(l, static_cast<const float*>(x), begin, end, lines, pixel_bytes, out);
}

}  // namespace modelflow::cpu
