// ONNX text of scales and zero points, and their check.
#pragma once

#include <string>
#include <string_view>

#include "backends/call_attrs.h"
#include "modelflow/attr.h"
#include "modelflow/error.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

/// ONNX text of the constants `prefix`scale (float) and `prefix`zero (u8) that the attributes `prefix`scale and
/// `prefix`zero_point hold: "x_scale = ...\nx_zero = ...\n" for "x_".
std::string quantization_text(std::string_view prefix);

/// Refuses a scale that is not positive and a zero point that is no 8-bit number.
Verdict check_quantization(const CallAttrs& attrs, std::string_view prefix);

}  // namespace modelflow::ops
