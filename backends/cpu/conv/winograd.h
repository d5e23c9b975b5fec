// 3x3 convolution as Winograd's minimal filtering F(m x m, 3x3) (Lavin and Gray, "Fast Algorithms for Convolutional
// Neural Networks", 2015): tiles of m + 2 pixels, m apart, are transformed into (m + 2)^2 frequencies, each frequency
// is a matrix product over the channels, and the products are transformed into m x m results. m = 2 takes 16
// multiplications instead of 36, m = 4 takes 36 instead of 144. With stride 2 (Yang et al., "Stride 2 1-D, 2-D, and 3-D
// Winograd for Convolutional Neural Networks", 2020) the even pixels of a row meet two taps and the odd ones the third:
// F(2, 2) of the former and the latter as they are take 5 multiplications for two results instead of 6, so 25 instead
// of 36 for 2 x 2. Over three axes the first one is summed up as it is: each frequency is a product over the channels
// of all planes that a result sees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/conv/problem.h"
#include "backends/cpu/gemm/f32.h"

namespace modelflow::cpu {

/// Of three axes, the first may have so many taps.
constexpr std::int64_t kMostWinogradTaps = 64;

/// Taps along the first of three axes.
struct Taps {
  std::int64_t first, last;
  std::int64_t count() const { return last - first; }
};

/// Those with which any of `count` planes of y from `plane` on sees a plane of x, and no padding.
static inline Taps taps_inside(std::int64_t front, std::int64_t taps, std::int64_t depth, std::int64_t plane,
                               std::int64_t count) {
  const auto clamp = [taps](std::int64_t n, std::int64_t least) { return n < least ? least : n > taps ? taps : n; };
  const std::int64_t first = clamp(front - plane - (count - 1), 0);
  return {first, clamp(depth + front - plane, first)};
}

/// How tiles of rows and columns are transformed.
enum class WinogradForm : std::uint8_t {
  two,          ///< F(2, 3) both
  four,         ///< F(4, 3) both
  strided,      ///< F(2, 3) of stride 2 both
  strided_line  ///< of rows alone: a window of one row
};

/// Extents of a tile.
struct WinogradTile {
  std::int64_t high, wide;     ///< results
  std::int64_t rows, columns;  ///< pixels of x that they see, and frequencies
  std::int64_t frequencies() const { return rows * columns; }
};

/// One group of filters.
struct WinogradRun {
  ConvProblem problem;            ///< of the group: its channels and filters, channels last on both sides
  std::int64_t x_pixel, y_pixel;  ///< floats from one pixel to the next in x and y: channels and filters of all groups
  WinogradForm form;
  WinogradTile tile;
  std::int64_t down, across;           ///< tiles of an image
  std::int64_t layers, deep;           ///< tiles of y of a stack, and stacks one behind the other
  const float* weights;                ///< [frequency], each as WinogradCode::product packs [taps, channels, filters]
  const float* plain;                  ///< the same as the model has them, [filters, channels, taps, window]
  std::int64_t pixel;                  ///< floats from one tile to the next in v: channels and some room
  std::int64_t v_step, products_step;  ///< floats from one frequency to the next
  std::int64_t frequencies() const { return tile.frequencies(); }
  /// Tiles at one place of so many planes of x as the tiles of y of a stack see.
  std::int64_t slices() const { return layers + problem.kernel_d - 1; }
  /// Tiles at one place of neighbouring planes; of images, single tiles.
  std::int64_t stacks() const { return problem.batch * deep * down * across; }
  /// The first plane of y of a stack.
  std::int64_t plane(std::int64_t stack) const { return stack / (down * across) % deep * layers; }
  /// The taps that tiles need.
  Taps taps() const {
    return deep > 1 ? Taps{0, problem.kernel_d}
                    : taps_inside(problem.front, problem.kernel_d, problem.depth, 0, layers);
  }
};

/// Winograd's method as one instruction set computes it.
struct WinogradCode {
  const char* layout;  ///< of transformed weights, for their cache
  std::size_t lanes;   ///< floats of a vector
  const F32Code& product;
  /// Stacks [first, last) of x into v [frequency, stack, slice, pixel]. `far` [stack, slice]: whether results may see
  /// too little of a tile.
  void (*input)(const WinogradRun& run, std::int64_t first, std::int64_t last, float* v, bool* far);
  /// And the products [frequency, stack, layer, filters] into y, with bias, residual and activation.
  void (*output)(const WinogradRun& run, std::int64_t first, std::int64_t last, const float* products, const bool* far);
};

/// Each only where host_isas() has it.
extern const WinogradCode winograd_avx2, winograd_avx512;

}  // namespace modelflow::cpu
