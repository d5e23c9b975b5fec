// Output shapes of operators over symbols.
#pragma once

#include "modelflow/graph.h"
#include "modelflow/shape_values.h"

namespace modelflow {

/// Output shapes that the schema functions of libonnx leave unknown because dims are symbols: windows (Conv, pooling),
/// Reshape, Concat, Slice, ... A shape without rank where nothing is known; one entry per output.
std::vector<Shape> symbolic_shapes(const Node& node, ShapeValues& values);

/// The schema function of the operator finds other extents than ONNX Runtime, or may: only what symbolic_shapes says
/// counts.
bool disputed_shapes(const Node& node, ShapeValues& values);

}  // namespace modelflow
