// Depthwise convolution of 8-bit numbers on AVX2: pairs of taps of 16 channels at a time, over a copy of what a task
// reads with its padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/qconv/problem.h"

namespace modelflow::cpu {

/// Channels of a group of weights: for each pair of taps 16 x 2 numbers of 16 bits, in the order of depthwise_pair.
inline constexpr std::int64_t kPairChannels = 16;

/// The channel that the products of place i (of 16) of a group belong to: as registers interleave two taps, four
/// channels of each half stand in the first eight places.
inline std::int64_t depthwise_pair(std::int64_t i) { return i % 4 + i / 4 % 2 * 8 + i / 8 * 4; }

struct QDepthPairs {
  ConvGeometry geometry;
  const std::uint8_t *x, *added;
  std::uint8_t* y;
  QEpilogue epilogue;
  std::uint8_t x_zero;
  const std::int16_t* weights;  ///< [groups][pairs][16][2]
  const std::int32_t* begin;    ///< [groups][16], in the order of depthwise_pair
  const float* scale;           ///< [groups][16]
};

/// Output rows [row0, row1) of an image.
struct QDepthRowsTask {
  std::int64_t image, row0, row1;
};

/// Scratch memory that a task needs, and the task, on the calling thread. Only where host_isas().has(Isa::avx2).
std::size_t qdepthwise_scratch_avx2(const QDepthPairs& run, const QDepthRowsTask& task);
void qdepthwise_block_avx2(const QDepthPairs& run, const QDepthRowsTask& task, std::byte* scratch);

}  // namespace modelflow::cpu
