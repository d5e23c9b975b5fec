// Convolution, dense or in groups of many channels, as a product of pixels and packed weights, one block of the output
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/conv/problem.h"

namespace modelflow::cpu {

/// Filters whose weights lie together: 1 to 4 vectors for each product, that is for each kernel row, kernel column and
/// input channel (in this order; kernel row, channel, column where reads_planes). A vector has as many filters as
/// lanes, or fewer, each for some neighbouring channels side by side. The filters of a panel are of one group.
struct DensePanel {
  std::int64_t first, count;  ///< its filters
  std::int64_t vectors;
  std::int64_t width;    ///< filters of a vector
  std::int64_t offset;   ///< floats from the start of the weights
  std::int64_t channel;  ///< the first that its filters read
  std::int64_t side;     ///< products of a filter that are side by side in a vector: 1, 2, 4, ... lanes
  std::int64_t filters() const { return vectors * width; }  ///< with those that fill the last vector
};

/// The first conv of a network reads a few planes; a copy in channels-last order would cost more than it saves.
static inline bool reads_planes(bool x_last, std::int64_t channels) { return !x_last && channels <= 4; }

struct DenseRun {
  ConvProblem problem;
  const float* weights;
  const DensePanel* panels;
  std::int64_t depth;         ///< channels of x that a filter reads: those of its group
  std::int64_t near_floats;   ///< of x: they stay in L2 beside weights
  std::int64_t panel_floats;  ///< of weights: they stay where tiles of a block want them
};

/// One task: a block of the output for panels [panel0, panel1).
struct DenseTask {
  ConvBlock block;
  std::int64_t panel0, panel1;
};

/// Dense convolutions as one instruction set computes them.
struct DenseCode {
  const char* layout;  ///< of packed weights, for their cache
  std::int64_t lanes;  ///< of a vector
  /// Scratch memory that `block` needs for this task.
  std::size_t (*scratch)(const DenseRun& run, const DenseTask& task);
  void (*block)(const DenseRun& run, const DenseTask& task, std::byte* scratch);
};

/// Each only where host_isas() has it.
extern const DenseCode dense_avx2, dense_avx512;

}  // namespace modelflow::cpu
