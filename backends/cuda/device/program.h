// Runs programs of elementwise ops on a few numbers of each operand: an interpreter, whose choices are the same for all
// threads. Values that a later line asks for wait in shared memory.
#pragma once

#include "backends/cuda/device/activation.h"
#include "backends/cuda/device/grid.h"
#include "backends/cuda/launches/elements.h"

namespace modelflow::cuda {

template <int N, class F>
__device__ inline void each(float (&a)[N], const float (&b)[N], F f) {
  for (int k = 0; k < N; ++k) a[k] = f(a[k], b[k]);
}

/// a = op(a, b). Each result is rounded by itself: nothing fuses across lines.
template <int N>
__device__ inline void run_line(const Program::Line& line, float (&a)[N], const float (&b)[N]) {
  constexpr float kHighest = 3.402823466e+38F;
  switch (line.op) {
    case PointwiseOp::add:
      return each(a, b, [](float p, float q) { return p + q; });
    case PointwiseOp::sub:
      return each(a, b, [](float p, float q) { return p - q; });
    case PointwiseOp::mul:
      return each(a, b, [](float p, float q) { return p * q; });
    case PointwiseOp::div:
      return each(a, b, [](float p, float q) { return p / q; });
    case PointwiseOp::max:
      return each(a, b, Max());
    case PointwiseOp::min:
      return each(a, b, Min());
    case PointwiseOp::at_least:  // Clip with one bound: the other is the last number in front of infinity
      return each(a, b, [](float p, float q) { return Min()(Max()(p, q), kHighest); });
    case PointwiseOp::at_most:
      return each(a, b, [](float p, float q) { return Min()(Max()(p, -kHighest), q); });
    case PointwiseOp::neg:
      return each(a, [](float p) { return -p; });
    case PointwiseOp::abs:
      return each(a, [](float p) { return fabsf(p); });
    case PointwiseOp::sqrt:
      return each(a, [](float p) { return sqrtf(p); });
    case PointwiseOp::reciprocal:
      return each(a, [](float p) { return 1.0F / p; });
    case PointwiseOp::exp:
      return each(a, [](float p) { return expf(p); });
    case PointwiseOp::log:
      return each(a, [](float p) { return logf(p); });
    case PointwiseOp::sin:
      return each(a, [](float p) { return sinf(p); });
    case PointwiseOp::cos:
      return each(a, [](float p) { return cosf(p); });
    case PointwiseOp::activation:
      return activate_plainly(ActivationSpec{static_cast<Activation>(line.b)}, a);
  }
}

/// read(i, v) gives input `i`; wrote(i, v) gets the result of line `i`. The last one is in `v`; `shared` has room for
/// what is kept of all threads.
template <int N, class Read, class Wrote>
__device__ inline void run_program(const Program& program, const Read& read, const Wrote& wrote, float* shared,
                                   float (&v)[N]) {
  Kept<N> kept(shared);
  const auto get = [&](std::uint8_t from, float(&to)[N]) {
    if (from == Program::kBefore) {
      for (int k = 0; k < N; ++k) to[k] = v[k];
    } else if (from >= Program::kFirstKept) {
      kept.get(from - Program::kFirstKept, to);
    } else {
      read(static_cast<int>(from), to);
    }
  };
  if (program.lines == 0) read(static_cast<int>(program.first), v);
  for (int i = 0; i < program.lines; ++i) {
    const Program::Line line = program.line[i];
    float b[N] = {};
    if (takes_two(line.op)) get(line.b, b);
    if (line.a != Program::kBefore) get(line.a, v);
    run_line<N>(line, v, b);
    if (line.keep != Program::kBefore) kept.put(line.keep - Program::kFirstKept, v);
    wrote(i, v);
  }
}

template <int N, class Read>
__device__ inline void run_program(const Program& program, const Read& read, float* shared, float (&v)[N]) {
  run_program<N>(
      program, read, [](int, const float(&)[N]) {}, shared, v);
}

}  // namespace modelflow::cuda
