// Numbers as elements of any type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "modelflow/tensor.h"

namespace modelflow {

/// Floats of any width, those of 8 and 4 bits too.
bool holds_fractions(DType dtype);

/// Writes `value` as element `i` of a tensor of this type: cut towards zero (floats of 8 and 4 bits: the nearest), to
/// the type's range, and with NaN and infinity where the type has them. Throws Error(unsupported) for types that hold
/// no numbers.
void store_element(DType dtype, std::byte* out, std::int64_t i, double value);

}  // namespace modelflow
