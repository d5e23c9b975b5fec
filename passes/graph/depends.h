// Whether values are computed from nodes, over whatever way.
#pragma once

#include <unordered_set>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow::passes {

/// True where one of the values is computed from a result of one of these nodes: what takes the place of both would
/// wait for itself.
bool depends(std::vector<const Value*> values, const std::unordered_set<const Node*>& nodes);

}  // namespace modelflow::passes
