// Dense and grouped convolution of 8-bit numbers as a product of pixels and packed weights, one run of output pixels at
// a time. A pixel is read through a table of row pointers, one per kernel position. On VNNI and AMX padding is a
// pointer to zero points, so that nothing has to be copied; code for smaller machines copies, and widens where it has
// to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/qconv/problem.h"

namespace modelflow::cpu {

/// Filters whose weights lie together: for each segment of the input, for each word of it (4 bytes, or 2 that are
/// widened), 1 to 4 vectors of 16 filters x the products of a word.
struct QPanel {
  std::int64_t first, vectors;  ///< its first filter, its vectors
  std::int64_t filters;         ///< that exist, at most 16 * vectors
  std::int64_t channel;         ///< first input channel of its group
  std::int64_t offset;          ///< bytes from the start of the weights
  std::int64_t scales;          ///< its first entry in `begin` and `scale`
};

struct QDenseRun {
  ConvGeometry geometry;
  const std::uint8_t *x, *added;
  std::uint8_t* y;
  QEpilogue epilogue;
  std::uint8_t x_zero;
  const std::uint8_t* zeros;  ///< a pixel of padding
  const std::int8_t* weights;
  const QPanel* panels;
  const std::int32_t* begin;
  const float* scale;
  std::int64_t group_channels;
  bool copied, joined;  ///< whether the input is copied, and joins_columns
  std::int64_t near;    ///< bytes that stay in L2 while others pass by
};

/// One task: output pixels [pixel0, pixel1) of all images in a row for panels [panel0, panel1). Where x is copied or y
/// has one plane per filter, these are whole rows of one image.
struct QDenseTask {
  std::int64_t pixel0, pixel1, panel0, panel1;
};

/// Whether the input has to be copied, with its padding around it and packed pixels: planes, or few channels or such
/// that four does not divide.
static inline bool copies_input(const ConvGeometry& g, std::int64_t group_channels) {
  return !g.x_last || group_channels % 4 != 0 || (g.channels < 16 && g.kernel_w > 1);
}

/// Whether the kernel columns of one row are one segment, since the copy has them side by side.
static inline bool joins_columns(const ConvGeometry& g, std::int64_t group_channels, bool copied) {
  return copied && group_channels == g.channels && g.kernel_w > 1 && g.dilation_w == 1;
}

/// Most pixels per tile for 1..4 vectors, so that sums, weights and row pointers fit the registers.
constexpr int kQTileRows[5] = {0, 12, 12, 9, 6};

/// Scratch memory that a task needs, and the task, on the calling thread. Only where host_isas().has(Isa::avx512_vnni).
std::size_t qdense_scratch_vnni(const QDenseRun& run, const QDenseTask& task);
void qdense_block_vnni(const QDenseRun& run, const QDenseTask& task, std::byte* scratch);
/// The same on tiles, for one group and panels of one or two vectors, with weights filled up to whole tiles. Only where
/// host_isas().has(Isa::amx).
std::size_t qdense_scratch_amx(const QDenseRun& run, const QDenseTask& task);
void qdense_block_amx(const QDenseRun& run, const QDenseTask& task, std::byte* scratch);

/// The same in pairs of 16 bits, in words for weights that are bounded in pairs (src/core/bounded_pairs.h), and in
/// words for AVX-VNNI: for panels of one vector, over copies. Only where host_isas().has(Isa::avx2), or Isa::avx_vnni.
std::size_t qdense_scratch_pairs_avx2(const QDenseRun& run, const QDenseTask& task);
void qdense_block_pairs_avx2(const QDenseRun& run, const QDenseTask& task, std::byte* scratch);
std::size_t qdense_scratch_bounded_avx2(const QDenseRun& run, const QDenseTask& task);
void qdense_block_bounded_avx2(const QDenseRun& run, const QDenseTask& task, std::byte* scratch);
std::size_t qdense_scratch_quads_avx2(const QDenseRun& run, const QDenseTask& task);
void qdense_block_quads_avx2(const QDenseRun& run, const QDenseTask& task, std::byte* scratch);

}  // namespace modelflow::cpu
