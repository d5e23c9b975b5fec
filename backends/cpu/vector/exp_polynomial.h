// The exponential function as a polynomial (that of Cephes' expf), on the compiler's own vector types. Internal linkage
// on purpose: each including file is compiled for another instruction set, and the linker must not mix them.
#pragma once

#define MODELFLOW_LOOP inline __attribute__((always_inline))

namespace modelflow::cpu {
namespace {

constexpr float kRounding = 12582912.0f;  // 1.5 * 2^23: added to a number, its lowest bits count ones

/// exp(x) = p * 2^(t - kRounding) of x in [-87, 88] to about 1 ulp; NaN stays NaN. References: a vector in a parameter
/// would have a calling convention that depends on the instruction set.
template <class Floats>
MODELFLOW_LOOP void exponential_parts(const Floats& x, Floats& t, Floats& p) {
  t = x * 1.44269504f + kRounding;
  const Floats n = t - kRounding;
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
}

/// e = exp(x). `Floats` and `Ints` are vectors of as many 32-bit numbers.
template <class Floats, class Ints>
MODELFLOW_LOOP void exponential_within(const Floats& x, Floats& e) {
  Floats t, p;
  exponential_parts(x, t, p);
  const Ints power = (reinterpret_cast<Ints>(t) - 0x4b400000 + 127) << 23;
  e = p * reinterpret_cast<Floats>(power);
}

}  // namespace
}  // namespace modelflow::cpu
