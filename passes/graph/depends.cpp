// Follows values back to what they are computed from, subgraphs included.
#include "passes/graph/depends.h"

namespace modelflow::passes {

bool depends(std::vector<const Value*> values, const std::unordered_set<const Node*>& nodes) {
  std::unordered_set<const Node*> seen;
  const auto visit = [&](const Node& node, const auto& self) -> void {
    for (const Value* input : node.inputs())
      if (input) values.push_back(input);
    for (const Graph* graph : node.subgraphs()) {
      for (const auto& inner : graph->nodes()) self(*inner, self);
      for (const Value* output : graph->outputs()) values.push_back(output);
    }
  };
  while (!values.empty()) {
    const Node* node = values.back()->producer();
    values.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (nodes.contains(node)) return true;
    visit(*node, visit);
  }
  return false;
}

}  // namespace modelflow::passes
