// Depthwise convolution (one filter per channel, or a few): vectors of channels, up to eight neighbouring
// results at once.
#pragma once

#include <cstddef>

#include "backends/cpu/conv/problem.h"

namespace modelflow::cpu {

struct DepthwiseRun {
  ConvProblem problem;
  const float* weights;  ///< [kh, kw, filters rounded up to 16]
};

/// Depthwise convolutions as one instruction set computes them.
struct DepthwiseCode {
  /// Scratch memory that `block` needs.
  std::size_t (*scratch)(const DepthwiseRun& run, const ConvBlock& block);
  void (*block)(const DepthwiseRun& run, const ConvBlock& block, std::byte* scratch);
};

/// Each only where host_isas() has it.
extern const DepthwiseCode depthwise_avx2, depthwise_avx512;

}  // namespace modelflow::cpu
