// Broadcasting of shapes over symbols.
#pragma once

#include "modelflow/graph.h"
#include "modelflow/shape_values.h"

namespace modelflow {

/// The extent that two broadcast to, given that they do: unknown where either may be the 1.
Dim broadcast(const Dim& a, const Dim& b);
bool has_extent(const Shape& shape, const Dim& dim);
/// Whether an extent of the target that x is brought to is, or may come out as, a number below 0, which Reshape and
/// Expand read as another extent: not where it is an extent of x as well, or divides its elements.
bool may_be_wild(const Dim& dim, const Shape& x);
Shape expand_shape(const Node& node, ShapeValues& values);
/// Add, Where and whatever else broadcasts all of its inputs; rank unknown for other ops.
Shape elementwise_shape(const Node& node);

}  // namespace modelflow
