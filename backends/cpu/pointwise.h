#pragma once

#include <cstddef>

namespace modelflow::cpu {

enum class PointwiseOp { add, sub, mul, div, max, min, neg, abs, sqrt, reciprocal, log, activation };

/// y[i] = op(a[i], b[i]) for n floats; ops of one operand read `a` alone. Not for `activation`.
using PointwiseStep = void (*)(PointwiseOp op, const float* a, const float* b, float* y, std::size_t n);

/// Written once in pointwise_loops.h and compiled for each instruction set.
extern const PointwiseStep pointwise_step_any, pointwise_step_avx512;

}  // namespace modelflow::cpu
