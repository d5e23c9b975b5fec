// Nodes whose results nobody wants go.
#include <unordered_set>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow {

bool Graph::removable(const Value& value) const {
  return value.uses_.empty() && value.output_count_ == 0 && !value.graph_->pinned.contains(value.name_);
}

bool Graph::removable(const Node& node) const {
  if (node.outputs_.empty()) return false;  // it can only be there for what it does
  for (const Value* value : node.outputs_) {
    if (value && !removable(*value)) return false;
  }
  return true;
}

std::size_t Graph::prune() {
  std::size_t erased = 0;
  for (const auto& node : nodes_) {
    if (!holds_graphs_) break;
    for (Graph* graph : node->subgraphs()) erased += graph->prune();
  }
  // Backwards, every reader comes before what it reads: one sweep finds all, captured values included.
  for (auto it = nodes_.end(); it != nodes_.begin();) {
    Node& node = **--it;
    if (!removable(node)) continue;
    ++it;
    erase(node);
    ++erased;
  }
  for (auto it = values_.begin(); it != values_.end();) {
    Value& value = *it++;
    if (!value.producer_ && !value.is_input_ && removable(value)) erase(value);
  }
  return erased;
}

}  // namespace modelflow
