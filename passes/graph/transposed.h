// A constant with its axes in another order.
#pragma once

#include "modelflow/attr.h"
#include "modelflow/tensor.h"

namespace modelflow::passes {

/// The elements in the order in which axis i is axis perm[i] of the source, as Transpose says it; rank 1 or more, whole
/// bytes.
Tensor transposed(const Tensor& source, const Ints& perm);

}  // namespace modelflow::passes
