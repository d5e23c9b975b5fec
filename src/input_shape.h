// Shapes of inputs that the user gives.
#pragma once

#include <map>
#include <string>

#include "modelflow/model.h"

namespace modelflow {

/// Throws Error(usage) where a shape is given for an input that the model does not have, or one that its own rank and
/// numbers rule out.
void check_input_shapes(const Model& model, const std::map<std::string, Dims>& given);

}  // namespace modelflow
