#pragma once

// Vectors of the compiler's own kind and exponentials of them. Internal linkage on purpose: each including file is
// compiled for another instruction set, and the linker must not mix them.

#include <cstddef>
#include <cstring>

namespace modelflow::cpu {
namespace {

#define MODELFLOW_LOOP inline __attribute__((always_inline))

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
  const float magic = 12582912.0f;  // 1.5 * 2^23: the lowest bits count ones
  const Lanes t = x * 1.44269504f + magic, n = t - magic;
  const Lanes r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
  const IntLanes power = (reinterpret_cast<IntLanes>(t) - 0x4b400000 + 127) << 23;
  return x < all(-87.0f) ? Lanes{} : p * reinterpret_cast<Lanes>(power);
}

}  // namespace
}  // namespace modelflow::cpu
