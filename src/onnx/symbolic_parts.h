// Shapes of parts: Slice, Split, Range.
#pragma once

#include <optional>
#include <vector>

#include "modelflow/graph.h"
#include "modelflow/shape_values.h"

namespace modelflow {

Shape slice_shape(const Node& node, ShapeValues& values);
/// Backwards from the far end, which ONNX Runtime reads as "all of it" and the schema as nothing.
bool disputed_slice(const Node& node, ShapeValues& values);
Shape range_shape(const Node& node, ShapeValues& values);
std::vector<Shape> split_shapes(const Node& node, ShapeValues& values);

/// An axis counted from the front; nothing where the rank has no such axis.
std::optional<std::size_t> axis_in(std::int64_t axis, std::size_t rank);

}  // namespace modelflow
