// Copies an image into lines of bfloat16.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/conv/lines.h"
#include "backends/cpu/gemm/round_amx.h"

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

std::uint16_t rounded(float x) {
  return static_cast<std::uint16_t>(_mm_extract_epi16(reinterpret_cast<__m128i>(_mm_cvtneps_pbh(_mm_set_ss(x))), 0));
}
std::uint16_t rounded(std::uint16_t x) { return x; }

/// Row `row` of an image in bfloat16, channels last.
template <class T>
void interleave(const ConvGeometry& g, const T* x, std::int64_t row, std::uint16_t* to) {
  const T* from = x + row * g.width * (g.x_last ? g.channels : 1);
  const std::int64_t pixel = g.x_last ? g.channels : 1, plane = g.x_last ? 1 : g.height * g.width;
  for (std::int64_t c = 0; c < g.channels; ++c)
    for (std::int64_t i = 0; i < g.width; ++i) to[i * g.channels + c] = rounded(from[i * pixel + c * plane]);
}

/// Rows of the window of the pixels of y side by side, each a step of a tile.
template <class T>
void gather_lines(const ConvLines& l, const ConvGeometry& given, const T* x, std::int64_t begin, std::int64_t end,
                  std::int64_t lines, std::byte* out) {
  const ConvGeometry& g = l.g;
  const std::int64_t step = given.stride_w * given.channels, padded = given.left * given.channels;
  const __mmask32 window = ~std::uint32_t{0} >> (32 - g.channels);
  const std::int64_t reach = padded + given.width * given.channels;
  std::vector<std::uint16_t> room(static_cast<std::size_t>(std::max(reach, g.columns * step) + 64));
  for (const ConvLines::Grid& grid : l.grids) {
    std::byte* to = out;
    for (std::int64_t line = begin; line < end + l.reach; ++line) {
      const std::int64_t row = line * g.stride_h + grid.row - g.top;
      const bool inside = row >= 0 && row < given.height;
      if (inside) interleave(given, x, row, room.data() + padded);
      for (std::int64_t i = 0; i < l.pitch; ++i, to += kTileBytes) {
        const std::uint16_t* from = room.data() + i * step;
        _mm512_storeu_si512(to, inside ? _mm512_maskz_loadu_epi16(window, from) : _mm512_setzero_si512());
      }
    }
    out += l.grid_pixels(lines) * kTileBytes;
  }
}

}  // namespace

void gather_lines_amx(const ConvLines& l, const ConvGeometry& given, const void* x, bool bf16, std::int64_t begin,
                      std::int64_t end, std::int64_t lines, std::byte* out) {
  if (bf16) return gather_lines(l, given, static_cast<const std::uint16_t*>(x), begin, end, lines, out);
  gather_lines(l, given, static_cast<const float*>(x), begin, end, lines, out);
}

void copy_lines_amx(const ConvLines& l, const void* x, bool bf16, std::int64_t begin, std::int64_t end,
                    std::int64_t lines, std::size_t pixel_bytes, std::byte* out) {
  if (bf16) return copy_lines(l, static_cast<const std::uint16_t*>(x), begin, end, lines, pixel_bytes, out);
  copy_lines(l, static_cast<const float*>(x), begin, end, lines, pixel_bytes, out);
}

}  // namespace modelflow::cpu
