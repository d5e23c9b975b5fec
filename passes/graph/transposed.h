// Axes in another order: of constants, and by Transposes.
#pragma once

#include "modelflow/attr.h"
#include "modelflow/graph.h"
#include "modelflow/tensor.h"

namespace modelflow::passes {

/// The elements in the order in which axis i is axis perm[i] of the source, as Transpose says it; rank 1 or more, whole
/// bytes.
Tensor transposed(const Tensor& source, const Ints& perm);
/// perm of the axes of x that are longer than 1: ascending where no number moves.
Ints longer_axes(const Ints& perm, const Shape& x);
/// A Transpose that swaps the last two axes and moves nothing else.
bool swaps_last_two(const Node& node);

}  // namespace modelflow::passes
