// Loops of elementwise operations on floats.
#pragma once

#include <cstddef>

#include "backends/activation.h"
#include "backends/pointwise_op.h"

namespace modelflow::cpu {

/// Loops over n floats; y may be an operand. Written once in pointwise_loops.h.
struct PointwiseLoops {
  /// y[i] = activation(x[i]).
  void (*activate)(const ActivationSpec& spec, const float* x, float* y, std::size_t n);
  /// y[i] = op(a[i], b[i]); ops of one operand read `a` alone. Not for `activation`.
  void (*step)(PointwiseOp op, const float* a, const float* b, float* y, std::size_t n);
  void (*fill)(float value, float* y, std::size_t n);
  /// All of them joined by add, max or min, from `first` on.
  float (*join)(PointwiseOp op, float first, const float* x, std::size_t n);
};

}  // namespace modelflow::cpu
