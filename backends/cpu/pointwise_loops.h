#pragma once

// One instruction of a pointwise program on n floats, in loops that compilers vectorize. Internal linkage on purpose:
// each including file is compiled for another instruction set, and the linker must not mix them.

#include <cmath>
#include <cstddef>

#include "backends/cpu/pointwise.h"

namespace modelflow::cpu {
namespace {

template <class F>
void each(const float* a, const float* b, float* y, std::size_t n, F f) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

// y may be a or b; for ops of one operand b is a.
void pointwise_step(PointwiseOp op, const float* a, const float* b, float* y, std::size_t n) {
  switch (op) {
    case PointwiseOp::add:
      return each(a, b, y, n, [](float p, float q) { return p + q; });
    case PointwiseOp::sub:
      return each(a, b, y, n, [](float p, float q) { return p - q; });
    case PointwiseOp::mul:
      return each(a, b, y, n, [](float p, float q) { return p * q; });
    case PointwiseOp::div:
      return each(a, b, y, n, [](float p, float q) { return p / q; });
    // A NaN on either side stays one, as ONNX Runtime has it.
    case PointwiseOp::max:
      return each(a, b, y, n, [](float p, float q) { return p > q || p != p ? p : q; });
    case PointwiseOp::min:
      return each(a, b, y, n, [](float p, float q) { return p < q || p != p ? p : q; });
    case PointwiseOp::neg:
      return each(a, a, y, n, [](float p, float) { return -p; });
    case PointwiseOp::abs:
      return each(a, a, y, n, [](float p, float) { return std::fabs(p); });
    case PointwiseOp::sqrt:
      return each(a, a, y, n, [](float p, float) { return std::sqrt(p); });
    case PointwiseOp::reciprocal:
      return each(a, a, y, n, [](float p, float) { return 1 / p; });
    case PointwiseOp::activation:
      return;  // ActivationSpec's own loops
  }
}

}  // namespace
}  // namespace modelflow::cpu
