#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// The local function that a node calls; null where it is an op.
const Function* find_function(const Model& model, const Node& node);

/// Writes the function's body in place of the node that calls it; the node is erased. Values keep unique names, the
/// results the names of the call's outputs.
void inline_call(Node& call, const Function& function);

}  // namespace modelflow
