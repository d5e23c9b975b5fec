// Local functions of a model: found, called, written out in place.
#pragma once

#include <set>

#include "modelflow/kernel.h"
#include "modelflow/model.h"

namespace modelflow {

/// The local function that a node calls; null where it is an op.
const Function* find_function(const Model& model, const Node& node);

/// The functions of the model that calls lead to, in bodies of functions as well; those in `graph`, which may be a part
/// of it.
std::set<const Function*> called_functions(const Model& model);
std::set<const Function*> called_functions(const Model& model, const Graph& graph);

/// What nodes and values of a body are called where it is written out: after the call, or as in the body. Either way
/// names that are taken get a number.
enum class InnerNames { from_call, kept };

/// Writes the function's body in place of the node that calls it; the node is erased. The results have the names of the
/// call's outputs.
void inline_call(Node& call, const Function& function, InnerNames names = InnerNames::from_call);

}  // namespace modelflow
