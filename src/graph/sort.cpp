// Topological order that leaves a sorted graph as it is.
#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "modelflow/error.h"
#include "modelflow/graph.h"

namespace modelflow {
namespace {

/// The node of `graph` that is `node` or holds it in a nested subgraph.
Node* ancestor_in(const Graph& graph, Node* node) {
  while (node && &node->graph() != &graph) node = node->graph().parent();
  return node;
}

}  // namespace

// Kahn's algorithm that always takes the ready node that stood first: a sorted graph stays as it is.
void Graph::sort() {
  std::vector<Node*> nodes;
  std::unordered_map<const Node*, std::size_t> position;
  for (const auto& node : nodes_) {
    position[node.get()] = nodes.size();
    nodes.push_back(node.get());
  }
  const auto for_readers = [&](const Node& node, auto visit) {
    for (const Value* value : node.outputs_) {
      if (!value) continue;
      for (const Use& use : value->uses_) {
        if (Node* reader = ancestor_in(*this, use.node)) visit(position.at(reader));
      }
    }
  };
  std::vector<std::size_t> waiting(nodes.size());
  for (const Node* node : nodes) for_readers(*node, [&](std::size_t reader) { ++waiting[reader]; });
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  std::list<std::unique_ptr<Node>> sorted;
  while (!ready.empty()) {
    Node& node = *nodes[ready.top()];
    ready.pop();
    sorted.splice(sorted.end(), nodes_, node.where_);
    for_readers(node, [&](std::size_t reader) {
      if (--waiting[reader] == 0) ready.push(reader);
    });
  }
  if (!nodes_.empty()) {
    const std::string label = nodes_.front()->label();
    nodes_.splice(nodes_.begin(), sorted);
    throw Error(ErrorKind::invalid_input, label + " depends on its own result: the graph has a cycle");
  }
  nodes_.swap(sorted);
  ++version_;
}

}  // namespace modelflow
