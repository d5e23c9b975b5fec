// Tensors of any type from numbers that somebody wrote down.
#pragma once

#include <span>

#include "modelflow/tensor.h"

namespace modelflow {

/// A number as wide as every element type: 64 bits of mantissa hold all integers.
using Number = long double;

/// The numbers as elements of this type, floats to the nearest; throws Error(unsupported) for types that are no
/// numbers, and Error(usage) for a number that an integer type does not have.
Tensor numbers(DType dtype, Dims dims, std::span<const Number> values);

}  // namespace modelflow
