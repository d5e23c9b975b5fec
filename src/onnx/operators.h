// Which operators a version of ONNX has.
#pragma once

#include <string>

#include "modelflow/graph.h"
#include "modelflow/kernel.h"
#include "modelflow/model.h"

namespace modelflow {

/// Whether this opset of ONNX itself has the node's operator with so many inputs and these attributes.
Verdict in_opset(const Node& node, int opset);

/// Whether this opset allows the type for one input or output of a standard op; for ops that ONNX does not know, too.
bool allows_input(const Node& node, std::size_t index, DType type, std::int64_t opset);
bool allows_output(const Node& node, std::size_t index, DType type, std::int64_t opset);

/// The first standard node that has a value of this type where the model's opset does not allow it, and the value;
/// empty when there is none. Functions are looked at as they are written out.
std::string forbidden_type(const Model& model, DType type);

/// Whether two versions of its domain have the same operator.
bool same_operator(const Node& node, std::int64_t a, std::int64_t b);

}  // namespace modelflow
