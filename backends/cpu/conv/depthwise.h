// Depthwise convolution (one filter per channel, or a few) and that of small groups: vectors of channels, up to eight
// neighbouring results at once.
#pragma once

#include <cstddef>

#include "backends/cpu/conv/problem.h"

namespace modelflow::cpu {

/// In channels. Larger ones are dense convolutions each (Cascade Lake, 3 x 3: 8 channels take as long there, 16 half as
/// long).
constexpr int kLargestGroup = 4;

struct DepthwiseRun {
  ConvProblem problem;
  const float* weights;    ///< [kh, kw, group, filters rounded up to 16]
  std::int64_t group = 1;  ///< channels that a filter reads; as many filters read them
  bool far = false;        ///< x and y do not fit in L2 together
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
