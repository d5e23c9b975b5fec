#pragma once

// One instruction of a pointwise program on n floats, in loops that compilers vectorize. Internal linkage on purpose:
// each including file is compiled for another instruction set, and the linker must not mix them.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backends/cpu/pointwise.h"

namespace modelflow::cpu {
namespace {

template <class F>
void each(const float* a, const float* b, float* y, std::size_t n, F f) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

/// Natural logarithm to about 1 ulp, without a call or a branch, so that the loop vectorizes; tests of floats would be
/// branches, because they may trap, tests of their bits are none. x = m * 2^e with m around 1 and the polynomial for
/// m - 1 of the Cephes library's logf.
inline float logarithm(float x) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kSmallest = 0x00800000;
  const auto given = std::bit_cast<std::uint32_t>(x);
  const auto tiny = static_cast<std::int32_t>(given < kSmallest);
  const auto scaled = x * static_cast<float>(1 + tiny * 8388607);
  const auto bits = std::bit_cast<std::uint32_t>(scaled);
  const std::int32_t exponent = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;  // m lies in [sqrt(1/2), sqrt(2))
  const float m = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23)) - 1, z = m * m;
  const auto e = static_cast<float>(exponent - tiny * 23);
  float p = 7.0376836292e-2f * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float low = p * m * z - 2.12194440e-4f * e - 0.5f * z;
  const float y = m + low + 0.693359375f * e;
  // Of 0 minus infinity, of infinity itself, of what is below 0 no number.
  const auto mask = [](bool is) { return 0u - static_cast<std::uint32_t>(is); };
  const std::uint32_t plain = mask(given - 1 < kInfinity - 1), zero = mask(given << 1 == 0);
  const std::uint32_t other = (zero & 0xff800000u) | (~zero & (0x7fc00000u ^ (mask(given == kInfinity) & 0x00400000u)));
  return std::bit_cast<float>((plain & std::bit_cast<std::uint32_t>(y)) | (~plain & other));
}

// A NaN on either side stays one, as ONNX Runtime has it.
constexpr auto largest = [](float p, float q) { return p > q || p != p ? p : q; };
constexpr auto smallest = [](float p, float q) { return p < q || p != p ? p : q; };
constexpr float kHighest = std::numeric_limits<float>::max();

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
    case PointwiseOp::max:
      return each(a, b, y, n, largest);
    case PointwiseOp::min:
      return each(a, b, y, n, smallest);
    case PointwiseOp::at_least:  // Clip with one bound: the other is the last number in front of infinity
      return each(a, b, y, n, [](float p, float q) { return smallest(largest(p, q), kHighest); });
    case PointwiseOp::at_most:
      return each(a, b, y, n, [](float p, float q) { return smallest(largest(p, -kHighest), q); });
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

void fill(float value, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = value;
}

/// Sums of few numbers each, joined at the end: as many as vectors need, and closer to exact than one of all.
template <class F>
float join(float first, const float* x, std::size_t n, F f) {
  constexpr std::size_t kSums = 64;
  float sums[kSums];
  for (float& sum : sums) sum = first;
  for (; n >= kSums; n -= kSums, x += kSums)
    for (std::size_t i = 0; i < kSums; ++i) sums[i] = f(sums[i], x[i]);
  for (std::size_t i = 0; i < n; ++i) sums[i] = f(sums[i], x[i]);
  for (std::size_t width = kSums / 2; width > 0; width /= 2)
    for (std::size_t i = 0; i < width; ++i) sums[i] = f(sums[i], sums[i + width]);
  return sums[0];
}

float join(PointwiseOp op, float first, const float* x, std::size_t n) {
  if (op == PointwiseOp::max) return join(first, x, n, largest);
  if (op == PointwiseOp::min) return join(first, x, n, smallest);
  return join(first, x, n, [](float p, float q) { return p + q; });
}

constexpr PointwiseLoops kLoops = {pointwise_step, fill, join};

}  // namespace
}  // namespace modelflow::cpu
