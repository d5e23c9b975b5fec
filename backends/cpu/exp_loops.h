#pragma once

// Vectors of the compiler's own kind and exponentials of them. Internal linkage on purpose: each including file is
// compiled for another instruction set, and the linker must not mix them.

#include <cstddef>
#include <cstring>

#include "backends/cpu/exp_polynomial.h"

namespace modelflow::cpu {
namespace {

#ifdef __AVX2__
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef int IntLanes __attribute__((vector_size(kLanes * sizeof(int))));

constexpr float kNothing = -__builtin_inff();

MODELFLOW_LOOP Lanes load(const float* from) {
  Lanes x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
MODELFLOW_LOOP void store(float* to, Lanes x) { std::memcpy(to, &x, sizeof x); }
MODELFLOW_LOOP Lanes all(float x) { return Lanes{} + x; }
MODELFLOW_LOOP float sum_of(Lanes x) {
  float sum = 0;
  for (std::size_t i = 0; i < kLanes; ++i) sum += x[i];
  return sum;
}

/// exp(x) of x <= 0 to about 1 ulp, 0 below -87; NaN stays NaN.
MODELFLOW_LOOP Lanes exp_of_negative(Lanes x) {
  Lanes e;
  exponential_within<Lanes, IntLanes>(x, e);
  return x < all(-87.0f) ? Lanes{} : e;
}

}  // namespace
}  // namespace modelflow::cpu
