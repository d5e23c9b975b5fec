// Equality of models up to names.
#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// Whether two models compute the same by the same operations: equal interface and nodes, whatever the names of inner
/// values and nodes, the order of independent nodes and the way constants are stored (floats up to 1e-6, relative).
bool equal(const Model& a, const Model& b);

}  // namespace modelflow
