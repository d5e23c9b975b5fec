// Passes run on graphs, in which values that other parts of the model call by name stay.
#pragma once

#include "modelflow/pass.h"

namespace modelflow {

/// Runs the pass on the graph, then, unless it is one of whole models, on what is nested in the nodes that are left.
/// Meanwhile values that quantization annotations or training info name are outputs of the main graph: so a pass leaves
/// them their names, types and layouts, as it does for all outputs. Returns the number of changes.
int run_held(const Pass& pass, Graph& graph, Context& context);

}  // namespace modelflow
