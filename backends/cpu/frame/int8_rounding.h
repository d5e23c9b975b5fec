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

/// One step less than infinite where the scale is next to nothing: 0 stays 0.
static inline float inverse_of(float scale) {
  const float inverse = 1 / scale, largest = 0x1.fffffep127F;
  return inverse < largest ? inverse : largest;
}

/// What a step of a row is worth whose largest number is `range`. Next to an infinite number all others are 0 steps of
/// infinite size, as NaN as it is itself.
static inline float step_size(float range) { return range / 127 + (range - range); }

}  // namespace modelflow::cpu
