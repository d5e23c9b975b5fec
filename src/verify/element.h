// Numbers as elements of any type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "modelflow/tensor.h"

namespace modelflow {

/// Writes `value` as element `i` of a tensor of this type: cut towards zero, to the type's range, and with NaN and
/// infinity where the type has them. 8-bit and smaller floats and 4-bit integers stay what they were.
void store_element(DType dtype, std::byte* out, std::int64_t i, double value);

}  // namespace modelflow
