// Types that the schemas of operators say wrong.
#pragma once

#include <vector>

#include "modelflow/graph.h"

namespace modelflow {

/// Where the schema functions of libonnx say something else than runtimes do: what the outputs really are.
void correct(const Node& node, std::vector<Type>& types);

}  // namespace modelflow
