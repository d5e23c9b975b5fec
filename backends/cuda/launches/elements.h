// What goes from the host to kernels over elements: an activation, programs of elementwise ops.
#pragma once

#include "backends/activation.h"
#include "backends/cuda/launches.h"
#include "backends/pointwise_op.h"

namespace modelflow::cuda {

struct ActivationLaunch {
  Number number;
  std::int64_t elements;
  ActivationSpec activation;
  const void* x;
  void* y;
};

/// A program of elementwise ops as it is interpreted. A value is the result of the line before, one that was kept, or
/// an input.
struct Program {
  static constexpr int kLines = 40, kKept = 6;
  static constexpr std::uint8_t kBefore = 0xff, kFirstKept = 0x80;
  struct Line {
    PointwiseOp op;
    std::uint8_t a, b;  ///< inputs, kFirstKept + slot, or kBefore; an activation stands in b
    std::uint8_t keep;  ///< the result too, as this; kBefore: nobody asks for it later
  };
  std::int32_t lines = 0, kept = 0;
  std::uint8_t first = 0;  ///< what there is before the first line, or alone without lines: this input
  Line line[kLines] = {};
};

struct PointwiseLaunch {
  Number number;
  std::int64_t elements;
  std::int32_t inputs;
  const void* x[Places::kOperands];
  void* y;
  Places places;
  Program program;
};

}  // namespace modelflow::cuda
