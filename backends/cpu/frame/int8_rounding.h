// Rounding to 8-bit integers ("steps" of the scale) in plain C++, with the results that the vector code has.
#pragma once

#include <cmath>
#include <cstdint>

namespace modelflow::cpu {

// Static, because the linker might keep the copy of a file that is compiled for another instruction set.

/// The larger one of `most` and |x|, NaN where either is: a row with a NaN has no range.
static inline float larger_size(float most, float x) {
  const float size = std::fabs(x);
  return most >= size || most != most ? most : size;
}

/// A scaled number as an integer from -127 to 127. NaN becomes the smallest integer, as in registers; the scale of its
/// row is NaN too and makes up for it.
static inline std::int32_t whole_step(float scaled) {
  return scaled >= -128 ? static_cast<std::int32_t>(std::nearbyint(scaled)) : -128;
}

}  // namespace modelflow::cpu
