// Shapes behind windows: convolution, pooling, resizing.
#pragma once

#include "modelflow/graph.h"
#include "modelflow/shape_values.h"

namespace modelflow {

Shape conv_shape(const Node& node);
Shape pool_shape(const Node& node);
/// Windows that ONNX Runtime counts in another way than the schema does.
bool disputed_window(const Node& node);
Shape conv_transpose_shape(const Node& node);
Shape resize_shape(const Node& node, ShapeValues& values);

}  // namespace modelflow
