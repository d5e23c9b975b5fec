// Shapes of inputs that the user gives.
#pragma once

#include <map>
#include <string>

#include "modelflow/model.h"

namespace modelflow {

/// Throws Error(usage) where a shape is given for an input that the model does not have, or one that its own rank and
/// numbers rule out.
void check_input_shapes(const Model& model, const std::map<std::string, Dims>& given);

/// Whether a value of this shape may have these extents.
bool fits(const Shape& shape, const Dims& dims);

/// Whether some extent of an input is left open.
bool leaves_extents_open(const Model& model);
/// The model for inputs of these extents alone: all types inferred anew. As it came where they contradict it.
Model for_input_shapes(const Model& model, const std::map<std::string, Dims>& given);

}  // namespace modelflow
