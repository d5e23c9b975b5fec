// Types that the schemas of operators say wrong.
#pragma once

#include <vector>

#include "modelflow/graph.h"
#include "modelflow/shape_values.h"

namespace modelflow {

/// Where the schema functions of libonnx say something else than runtimes do: what the outputs really are. `values`:
/// what is known of the inputs.
void correct(const Node& node, ShapeValues& values, std::vector<Type>& types);

}  // namespace modelflow
