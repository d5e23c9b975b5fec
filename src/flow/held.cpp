// Values that other parts of the model name become outputs, and no outputs again.
#include "src/flow/held.h"

#include <algorithm>
#include <vector>

namespace modelflow {
namespace {

std::vector<Value*> named_values(const Graph& graph) {
  std::vector<Value*> values;
  for (const std::string& name : graph.pinned) {
    Value* value = graph.find(name);
    if (value && value->producer() && !value->is_graph_output()) values.push_back(value);
  }
  return values;
}

}  // namespace

bool has_named_values(const Graph& graph) { return !named_values(graph).empty(); }

Held::Held(Graph& graph) : graph_(graph), outputs_(graph.outputs().size()) {
  for (Value* value : named_values(graph)) graph.add_output(*value);
}

Held::~Held() {
  while (graph_.outputs().size() > outputs_) graph_.remove_output(graph_.outputs().size() - 1);
}

}  // namespace modelflow
