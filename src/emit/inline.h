#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// Writes the function's body in place of the node that calls it; the node is erased. Values keep unique names, the
/// results the names of the call's outputs.
void inline_call(Node& call, const Function& function);

}  // namespace modelflow
