// The epilogue of 8-bit convolutions: from sums of products to u8 results, 16 filters at a time. For files named
// *_avx2.cpp, see backends/cpu/vector/vector.h.
#pragma once

#include "backends/cpu/qconv/problem.h"
#include "backends/cpu/vector/activation.h"
#include "backends/cpu/vector/bytes.h"
#include "backends/cpu/vector/words.h"

namespace modelflow::cpu {
namespace {

/// Filters whose sums lie side by side.
constexpr std::size_t kFilters = 16;

/// What becomes of sums. Activations that are bounds (QEpilogue::bounded) become bounds of the u8 result; all others
/// give steps of y by their own scale and shift.
struct ByteFinish {
  std::int32_t low, high, zero;  ///< of the result
  float added_step, added_0;     ///< a residual of r adds r * added_step + added_0
  ops::Residual residual;
  ActivationSpec activation;
};

inline ByteFinish byte_finish_of(const QEpilogue& e) {
  const QBounds bounds = bounds_of(e);
  ByteFinish f{bounds.low, bounds.high, e.y.zero_point, 0, 0, e.residual, e.activation};
  const float to_steps = 1 / e.y.scale;
  if (e.bounded()) f.activation = {};
  f.activation.scale *= to_steps, f.activation.shift *= to_steps;
  f.added_step = e.added.scale * (e.bounded() || e.residual == ops::Residual::after ? to_steps : 1);
  f.added_0 = -static_cast<float>(e.added.zero_point) * f.added_step;
  return f;
}

/// Where results go: pixels `step` bytes apart, of the first `filters` of kFilters.
struct ByteTarget {
  std::uint8_t* y;
  const std::uint8_t* added;  ///< the residual, steps as y; may be null
  std::ptrdiff_t step;
  std::size_t filters;
};

/// sums[pixels][kFilters] times scale[kFilters] to results.
__attribute__((noinline)) inline void finish_pixels(const ByteFinish& f, const std::int32_t* sums, const float* scale,
                                                    const ByteTarget& t, std::size_t pixels) {
  constexpr std::size_t kVectors = kFilters / kLanes;
  const std::uint8_t* added = t.added;
  std::uint8_t* y = t.y;
  const bool before = added && f.residual == ops::Residual::before;
  const bool after = added && f.residual == ops::Residual::after;
  with_activation(f.activation, [=](auto act) {
    const Floats step = all(f.added_step), at_zero = all(f.added_0);
    Floats factor[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) factor[v] = load(scale + v * kLanes);
    const std::int32_t* from = sums;
    const std::uint8_t* residual = added;
    std::uint8_t* to = y;
    for (std::size_t p = 0; p < pixels; ++p, from += kFilters, to += t.step) {
      alignas(16) std::uint8_t sixteen[kFilters] = {};
      if (residual) {
        copy_sixteen(sixteen, residual, t.filters);
        residual += t.step;
      }
      Ints q[kVectors];
#pragma GCC unroll 2
      for (std::size_t v = 0; v < kVectors; ++v) {
        Floats x = as_floats(load_ints(from + v * kLanes)) * factor[v];
        const Floats other = as_floats(load_bytes(sixteen + v * kLanes)) * step + at_zero;
        if (before) x += other;
        x = act(x);
        if (after) x += other;
        q[v] = nearest(x) + f.zero;
        q[v] = q[v] > f.low ? q[v] : Ints{} + f.low;
        q[v] = q[v] < f.high ? q[v] : Ints{} + f.high;
      }
      Bytes bytes = narrowed(q[0], q[1], q[0], q[1]);
      copy_sixteen(to, bytes_of(bytes), t.filters);
    }
  });
}

}  // namespace
}  // namespace modelflow::cpu
