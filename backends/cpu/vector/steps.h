// Floats in steps of a scale, for rounding to 8 bits as QuantizeLinear says it. For files named so, see vector.h.
#pragma once

#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/vector/math.h"

namespace modelflow::cpu {
namespace {

/// How far x is from an integer.
MODELFLOW_INLINE Floats off_integer(Floats x) {
#ifdef __AVX512DQ__
  return abs(_mm512_reduce_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
  return abs(x - ((x + kRounding) - kRounding));
#endif
}

/// x / unit for results that fit 8 bits. A product with the inverse is off by less than 1e-4 there: it is rounded alike
/// unless it lies so near to the middle of two integers. Middles are common: a mean of two numbers of one scale is one.
struct Steps {
  Floats unit, inverse;

  explicit MODELFLOW_INLINE Steps(float scale) : unit(all(scale)), inverse(all(inverse_of(scale))) {}

  MODELFLOW_INLINE Floats operator()(Floats x) const {
    Floats steps[1];
    write(steps, [&](int) { return x; });
    return steps[0];
  }

  /// Of number(i); one for which a product will not do makes quotients of all of them.
  template <int count, class Number>
  MODELFLOW_INLINE void write(Floats (&steps)[count], Number number) const {
    Floats off = {};
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      steps[i] = number(i) * inverse;
      off = max(off, off_integer(steps[i]));
    }
    if (__builtin_expect(all_of(off < all(0.4999f)), true)) return;
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) steps[i] = number(i) / unit;
  }
};

}  // namespace
}  // namespace modelflow::cpu
