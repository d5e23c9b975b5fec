#pragma once

#include <string_view>

#include "modelflow/model.h"

namespace modelflow {

/// One local function in text form: `<domain: "d", opset_import: ["" : 17]> Name <alpha> (x) => (y) { ... }`.
/// Throws Error(invalid_input).
Function parse_function(std::string_view text);

}  // namespace modelflow
