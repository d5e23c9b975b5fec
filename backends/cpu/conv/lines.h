// Images copied in lines, so that tiles of AMX read the pixels under each position of the window at one distance.
#pragma once

#include <vector>

#include "backends/cpu/conv/problem.h"
#include "backends/cpu/gemm/tiles.h"

namespace modelflow::cpu {

/// How a convolution on tiles reads x: from a copy in lines that are longer than those of y by as much as the window
/// reaches further. For each position of the window, the pixels under it then lie at one distance, across the ends of
/// lines too, and rows of a tile can begin at any of them. The few results that belong to no pixel of y, at the end of
/// each line, are computed and dropped. A copy of every window (im2col) would copy each number once for each position
/// instead. With strides there is a grid of such lines for each remainder.
///
/// With few channels, the numbers under a row of the window are gathered and make up a pixel: otherwise the first
/// convolution of a network would fill a tenth of a tile, and its x may have channels second.
struct ConvLines {
  ConvGeometry g;             ///< a product over pixels has lines of one pixel
  std::int64_t pitch, reach;  ///< pixels from a line to the next; lines that windows reach further

  /// What the constructor makes of it is the convolution that tiles compute; `given` is the one that was asked for.
  explicit ConvLines(const ConvGeometry& given);
  /// Whether the numbers under a row of the window are gathered.
  static bool gathers(std::int64_t channels, std::int64_t kernel_w, std::int64_t dilation_w) {
    constexpr std::int64_t kFew = 16, kStep = kTileBytes / 2;
    return channels < kFew && channels * kernel_w <= kStep && dilation_w == 1;
  }
  /// Positions of one image that are computed.
  std::size_t positions() const { return static_cast<std::size_t>((g.rows - 1) * pitch + g.columns); }
  bool is_product = false;  ///< windows are pixels, and all pixels windows

  struct Grid {
    std::int64_t row, column;  ///< remainders by the strides
  };
  std::vector<Grid> grids;
  /// Pixels of one grid that serves `lines` lines of y.
  std::size_t grid_pixels(std::int64_t lines) const {
    return static_cast<std::size_t>((lines + reach + 1) * pitch) + kTileBlock;
  }
  /// Bytes from a row of a tile to what each position of the window reads.
  std::vector<std::size_t> taps(std::int64_t lines, std::size_t pixel_bytes) const;
};

/// Grids for the lines [begin, end) of y of one image, in bfloat16, `pixel_bytes` from one pixel to the next, which
/// begins with whole steps of tiles. x: that image, in bfloat16 or float32. `lines`: as taps() was told. Only where
/// host_isas().has(Isa::amx).
void copy_lines_amx(const ConvLines& l, const void* x, bool bf16, std::int64_t begin, std::int64_t end,
                    std::int64_t lines, std::size_t pixel_bytes, std::byte* out);
/// The same where rows of the window are gathered from an image of the `given` geometry.
void gather_lines_amx(const ConvLines& l, const ConvGeometry& given, const void* x, bool bf16, std::int64_t begin,
                      std::int64_t end, std::int64_t lines, std::byte* out);

}  // namespace modelflow::cpu
