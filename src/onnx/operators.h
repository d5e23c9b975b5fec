// Which operators a version of ONNX has.
#pragma once

#include "modelflow/graph.h"
#include "modelflow/kernel.h"

namespace modelflow {

/// Whether this opset of ONNX itself has the node's operator with so many inputs and these attributes.
Verdict in_opset(const Node& node, int opset);

/// Whether two versions of its domain have the same operator.
bool same_operator(const Node& node, std::int64_t a, std::int64_t b);

}  // namespace modelflow
