// Weights that old files list as inputs.
#pragma once

#include <cstdint>
#include <set>

#include "modelflow/graph.h"

namespace modelflow {

/// Before IR 4 an initializer had to be listed as an input, and runtimes take it as constant all the same; from IR 4 on
/// the list means that callers may override it, which would forbid packing the weights. Takes those of a main graph of
/// an older IR off the list, but for `kept`, and gives their number. The writer lists them again where it has to.
int unlist_weights(Graph& graph, std::int64_t ir_version, const std::set<const Value*>& kept = {});

}  // namespace modelflow
