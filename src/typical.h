// At which extents of its inputs a model is judged where it leaves them open.
#pragma once

#include <map>
#include <string>

#include "modelflow/modelflow.h"
#include "src/verify/reference.h"

namespace modelflow {

/// By input name: of the data that were given, else of what the original ran first (which has the shapes of
/// Options::input_shapes), else as such data would be made up. Costs and counts go by them, nothing that has to be
/// right.
std::map<std::string, Dims> typical_extents(const Model& original, const Options& options, const Reference& reference);

}  // namespace modelflow
