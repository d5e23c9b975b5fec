// Depthwise convolution (one filter per channel, or a few): vectors of 16 channels, up to eight neighbouring results at once.
#pragma once

#include <cstddef>

#include "backends/cpu/conv/problem.h"

namespace modelflow::cpu {

struct DepthwiseRun {
  ConvProblem problem;
  const float* weights;  ///< [kh, kw, filters rounded up to 16]
};

/// Scratch memory that depthwise_block_avx512 needs for this block.
std::size_t depthwise_scratch(const DepthwiseRun& run, const ConvBlock& block);
/// Only where host_isas().has(Isa::avx512).
void depthwise_block_avx512(const DepthwiseRun& run, const ConvBlock& block, std::byte* scratch);

}  // namespace modelflow::cpu
