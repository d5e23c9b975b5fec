// The text form of parts of a model.
#pragma once

#include <string>

#include "modelflow/model.h"

namespace modelflow {

/// What follows the name of a function: "<attributes> (inputs) => (outputs) { nodes }".
std::string function_body_text(const Function& function);

}  // namespace modelflow
