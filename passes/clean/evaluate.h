// Nodes of constants are computed ahead of time.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "modelflow/pass.h"

namespace modelflow::passes {

using Known = std::unordered_map<const Value*, Tensor>;

struct Failure {
  Node* node;
  std::string reason;
};

/// Runs `nodes` (in topological order, fed by constants and by each other) in ONNX Runtime with its optimisations off
/// and adds every output to `results`. A node that the runtime cannot run is returned as a failure; those that need its
/// result are left out, all others are still evaluated.
std::vector<Failure> evaluate(const std::vector<Node*>& nodes, const Context& context, Known& results);

}  // namespace modelflow::passes
