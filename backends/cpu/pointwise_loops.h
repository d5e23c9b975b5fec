#pragma once

// One instruction of a pointwise program on n floats, in loops that compilers vectorize. Internal linkage on purpose:
// each including file is compiled for another instruction set, and the linker must not mix them.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "backends/cpu/pointwise.h"

namespace modelflow::cpu {
namespace {

template <class F>
void each(const float* a, const float* b, float* y, std::size_t n, F f) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

/// Natural logarithm to about 1 ulp, without a call or a branch, so that the loop vectorizes. x = m * 2^e with m around
/// 1 and the polynomial for m - 1 of the Cephes library's logf.
inline float logarithm(float x) {
  constexpr float kSmallest = std::numeric_limits<float>::min(), kInfinity = std::numeric_limits<float>::infinity();
  const bool tiny = x < kSmallest;
  const auto bits = std::bit_cast<std::uint32_t>(tiny ? x * 8388608.0f : x);
  const std::int32_t exponent = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;  // m lies in [sqrt(1/2), sqrt(2))
  const float m = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23)) - 1, z = m * m;
  const float e = static_cast<float>(exponent - (tiny ? 23 : 0));
  float p = 7.0376836292e-2f;
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                        2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    p = p * m + c;
  const float low = p * m * z - 2.12194440e-4f * e - 0.5f * z;
  const float y = m + low + 0.693359375f * e;
  const float special = x == 0 ? -kInfinity : x == kInfinity ? x : std::numeric_limits<float>::quiet_NaN();
  return x > 0 && x < kInfinity ? y : special;
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
    case PointwiseOp::log:
      return each(a, a, y, n, [](float p, float) { return logarithm(p); });
    case PointwiseOp::activation:
      return;  // ActivationSpec's own loops
  }
}

}  // namespace
}  // namespace modelflow::cpu
