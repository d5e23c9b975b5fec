#pragma once

#include <cmath>
#include <cstdint>

namespace modelflow::cpu {

// Static: one copy for all could be that of a file compiled for another instruction set.

/// The larger one of `most` and |x|, NaN where either is: the range of a row that has one is none.
static inline float larger_size(float most, float x) {
  const float size = std::fabs(x);
  return most >= size || most != most ? most : size;
}

/// Scaled numbers in whole steps, -127 to 127. What is no number becomes the smallest step there is, as in registers;
/// the size of the steps of its row, which is none, makes up for it.
static inline std::int32_t whole_step(float scaled) {
  return scaled >= -128 ? static_cast<std::int32_t>(std::nearbyint(scaled)) : -128;
}

}  // namespace modelflow::cpu
