// What surrounds the products of 8-bit convolutions: a table of where the windows of every pixel lie, and copies of
// operands and results in the order of channels last.
#pragma once

#include "backends/cpu/qconv/dense.h"

namespace modelflow::cpu {

/// Pixels into tiles of nearly one size.
struct PixelTiles {
  std::int64_t count, size, larger;  ///< the first `larger` have one pixel more
  PixelTiles(std::int64_t pixels, std::int64_t most) : count((pixels + most - 1) / most), size(pixels / count) {
    larger = pixels % count;
  }
  std::int64_t begin(std::int64_t tile) const { return tile * size + (tile < larger ? tile : larger); }
  std::int64_t pixels(std::int64_t tile) const { return size + (tile < larger); }
};

/// Where results go: pixels `step` bytes apart.
struct QTarget {
  std::uint8_t* y;
  const std::uint8_t* added;  ///< the residual, steps as y
  std::ptrdiff_t step;
  std::uint64_t mask;  ///< filters of the panel that exist
};

/// A task, ready for its products.
struct QSweep {
  const QDenseRun& run;
  const QDenseTask& task;
  std::int64_t rows;  ///< most pixels of a tile
  std::int64_t segments, length;
  const std::uint8_t* const* table;  ///< for every tile, segment and pixel the address of what that segment reads
  bool is_product;                   ///< windows are pixels of x, one after the other
  QTarget target;                    ///< of the first pixel and the first filter of the task
};

/// The products of a task; `scratch` is what the task's scratch memory holds behind qsweep_bytes.
using QProducts = void (*)(const QSweep& sweep, std::byte* scratch);

/// Bytes of what all segments of a window read.
std::int64_t window_bytes(const QDenseRun& run);
/// Scratch memory that qsweep_vnni needs for itself.
std::size_t qsweep_bytes(const QDenseRun& run, const QDenseTask& task);
/// Runs `products` for the task, in tiles of at most `most` pixels (16 or less).
void qsweep_vnni(const QDenseRun& run, const QDenseTask& task, std::int64_t most, std::byte* scratch,
                 QProducts products);

}  // namespace modelflow::cpu
