// Which operators a version of ONNX has.
#pragma once

#include "modelflow/graph.h"
#include "modelflow/kernel.h"

namespace modelflow {

/// Whether this opset of ONNX itself has the node's operator with so many inputs.
Verdict in_opset(const Node& node, int opset);

}  // namespace modelflow
