// Depthwise convolution of 8-bit numbers, channels last. Four rows of x are interleaved byte by byte, so that one
// instruction multiplies four taps of a kernel column; the interleaved bytes serve every kernel column and, with the
// weights shifted by a row, several rows of results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/qconv/problem.h"

namespace modelflow::cpu {

/// Up to 64 neighbouring channels in units of 16. With less than 4 units, a vector holds several pixels side by side.
struct QDepthBlock {
  std::int64_t first, channels, units;
  std::int64_t weights;  ///< bytes from the start: [vector, group of 4 rows, kernel column, row of results] x 64 bytes
  std::int64_t scales;   ///< its first entry in `begin` and `scale`: 4 vectors of 16
};

/// Byte b of lane l of vector v stands for this position of the 64.
static inline std::int64_t depthwise_position(std::int64_t vector, std::int64_t lane_of_16) {
  return lane_of_16 / 4 * 16 + vector * 4 + lane_of_16 % 4;
}

/// How rows of x are grouped: `quads` groups of four give `results` rows of results.
struct QDepthRows {
  std::int64_t quads, results;
};

static inline QDepthRows depthwise_rows(const ConvGeometry& g) {
  const std::int64_t quads = (g.kernel_h + 3) / 4;
  if (g.dilation_h != 1) return {quads, 1};
  const std::int64_t results = (4 * quads - g.kernel_h) / g.stride_h + 1;
  return {quads, results >= 4 ? 4 : results >= 2 ? 2 : 1};
}

struct QDepthwiseRun {
  ConvGeometry geometry;
  const std::uint8_t *x, *added;
  std::uint8_t* y;
  QEpilogue epilogue;
  const std::uint8_t* zeros;  ///< 64 bytes of padding
  const std::int8_t* weights;
  const QDepthBlock* blocks;
  const std::int32_t* begin;
  const float* scale;
};

/// Rows [row0, row1) of one image for blocks [block0, block1).
struct QDepthTask {
  std::int64_t image, row0, row1, block0, block1;
};

/// Scratch memory that qdepthwise_block_vnni needs for any task.
std::size_t qdepthwise_scratch(const ConvGeometry& g);
/// Only where host_isas().has(Isa::avx512_vnni).
void qdepthwise_block_vnni(const QDepthwiseRun& run, const QDepthTask& task, std::byte* scratch);

}  // namespace modelflow::cpu
