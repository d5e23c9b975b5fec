// Loops of softmax, over rows and over columns.
#pragma once

#include "backends/cpu/loops/attention_mask.h"

namespace modelflow::cpu {

/// One row of n scores: y = softmax of what the mask makes of scale * x, or its logarithm. y may be x.
struct SoftmaxRow {
  std::size_t n = 0;
  const float* x = nullptr;
  AttentionMask mask;
  float scale = 1;
  bool log = false;
  float* y = nullptr;
};

/// Columns of n scores each, one step of `inner` floats after the other; there is no mask.
struct SoftmaxColumns {
  std::size_t n = 0, inner = 0, count = 0;  ///< columns side by side: at most kSoftmaxColumns
  const float* x = nullptr;
  float scale = 1;
  bool log = false;
  float* y = nullptr;
};

inline constexpr std::size_t kSoftmaxColumns = 64;

/// Written once in softmax_loops.h.
struct SoftmaxLoops {
  void (*row)(const SoftmaxRow& row);
  void (*columns)(const SoftmaxColumns& columns);
};

}  // namespace modelflow::cpu
