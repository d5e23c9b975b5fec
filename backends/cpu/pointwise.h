#pragma once

#include <cstddef>

namespace modelflow::cpu {

enum class PointwiseOp { add, sub, mul, div, max, min, at_least, at_most, neg, abs, sqrt, reciprocal, log, activation };

/// Loops over n floats, written once in pointwise_loops.h and compiled for each instruction set.
struct PointwiseLoops {
  /// y[i] = op(a[i], b[i]); ops of one operand read `a` alone. Not for `activation`.
  void (*step)(PointwiseOp op, const float* a, const float* b, float* y, std::size_t n);
  void (*fill)(float value, float* y, std::size_t n);
  /// All of them joined by add, max or min, from `first` on.
  float (*join)(PointwiseOp op, float first, const float* x, std::size_t n);
};
extern const PointwiseLoops pointwise_loops_avx512;

}  // namespace modelflow::cpu
