// ONNX text that quantizes rows to 8-bit integers ("steps" of a scale for each row).
#pragma once

#include <string>

namespace modelflow::ops {

/// ONNX text: the rows of `x` (its last axis) in steps of a 127th of their largest element. Afterwards `steps` holds
/// whole numbers in [-127, 127], in float32, and `unit` the size of a step of each row; all names begin with `prefix`.
std::string row_steps_text(int opset, const std::string& x, const std::string& prefix = "");

}  // namespace modelflow::ops
