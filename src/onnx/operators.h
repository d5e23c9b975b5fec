#pragma once

#include <string_view>

namespace modelflow {

/// Whether this version of ONNX itself has the operator.
bool has_operator(std::string_view op, int opset);

}  // namespace modelflow
