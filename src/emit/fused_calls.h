// Whether calls of fused ops fit the ops of this build.
#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// Nodes of our domain whose function the model does not hold are taken for the ops of this build. Throws
/// Error(unsupported) when there is no such op, Error(invalid_input) when it takes other numbers of inputs.
void check_fused_calls(const Model& model);

}  // namespace modelflow
