// The loops of pointwise.h, written over vectors (see vector.h): one instruction of a pointwise program on n floats.
#pragma once

#include <limits>

#include "backends/cpu/loops/activation_loop.h"
#include "backends/cpu/loops/pointwise.h"

namespace modelflow::cpu {
namespace {

template <class F>
void each(const float* a, const float* b, float* y, std::size_t n, F f) {
  vectors(n, [&](std::size_t i, auto part) { store(y + i, f(load(a + i, part), load(b + i, part)), part); });
}
template <class F>
void each(const float* a, float* y, std::size_t n, F f) {
  vectors(n, [&](std::size_t i, auto part) { store(y + i, f(load(a + i, part)), part); });
}

constexpr float kHighest = std::numeric_limits<float>::max();

// y may be a or b.
MODELFLOW_FLAT void step(PointwiseOp op, const float* a, const float* b, float* y, std::size_t n) {
  switch (op) {
    case PointwiseOp::add:
      return each(a, b, y, n, [](Floats p, Floats q) { return p + q; });
    case PointwiseOp::sub:
      return each(a, b, y, n, [](Floats p, Floats q) { return p - q; });
    case PointwiseOp::mul:
      return each(a, b, y, n, [](Floats p, Floats q) { return p * q; });
    case PointwiseOp::div:
      return each(a, b, y, n, [](Floats p, Floats q) { return p / q; });
    case PointwiseOp::max:  // a NaN on either side stays one, as ONNX Runtime has it
      return each(a, b, y, n, [](Floats p, Floats q) { return maximum(p, q); });
    case PointwiseOp::min:
      return each(a, b, y, n, [](Floats p, Floats q) { return minimum(p, q); });
    case PointwiseOp::at_least:  // Clip with one bound: the other is the last number in front of infinity
      return each(a, b, y, n, [](Floats p, Floats q) { return minimum(maximum(p, q), all(kHighest)); });
    case PointwiseOp::at_most:
      return each(a, b, y, n, [](Floats p, Floats q) { return minimum(maximum(p, all(-kHighest)), q); });
    case PointwiseOp::neg:
      return each(a, y, n, [](Floats p) { return -p; });
    case PointwiseOp::abs:
      return each(a, y, n, [](Floats p) { return abs(p); });
    case PointwiseOp::sqrt:
      return each(a, y, n, [](Floats p) { return sqrt(p); });
    case PointwiseOp::reciprocal:
      return each(a, y, n, [](Floats p) { return 1.0f / p; });
    case PointwiseOp::exp:
      return each(a, y, n, [](Floats p) { return exp_of_any(p); });
    case PointwiseOp::log:
      return each(a, y, n, [](Floats p) { return log(p); });
    case PointwiseOp::sin:
      return each(a, y, n, [](Floats p) { return sin(p); });
    case PointwiseOp::cos:
      return each(a, y, n, [](Floats p) { return cos(p); });
    case PointwiseOp::activation:
      return;  // ActivationSpec's own loops
  }
}

MODELFLOW_FLAT void fill(float value, float* y, std::size_t n) {
  vectors(n, [&](std::size_t i, auto part) { store(y + i, all(value), part); });
}

/// Sums of few numbers each, joined at the end: as many as vectors need, and closer to exact than one of all.
template <class F>
float join(float first, const float* x, std::size_t n, F f) {
  Floats sums[4];
  for (Floats& sum : sums) sum = all(first);
  vectors_by_four(n, [&](std::size_t i, auto part, std::size_t v) { sums[v] = f(sums[v], load(x + i, part, first)); });
  return joined(f(f(sums[0], sums[1]), f(sums[2], sums[3])), f);
}

MODELFLOW_FLAT float join(PointwiseOp op, float first, const float* x, std::size_t n) {
  const auto add = [](Floats p, Floats q) { return p + q; };
  if (op == PointwiseOp::max) return join(first, x, n, [](Floats p, Floats q) { return maximum(p, q); });
  if (op == PointwiseOp::min) return join(first, x, n, [](Floats p, Floats q) { return minimum(p, q); });
  return join(first, x, n, add);
}

}  // namespace
}  // namespace modelflow::cpu
