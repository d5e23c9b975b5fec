// Values that other parts of the model name become outputs, and no outputs again.
#include "src/flow/held.h"

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

/// For as long as it lives they are outputs.
class Held {
 public:
  explicit Held(Graph& graph) : graph_(graph), outputs_(graph.outputs().size()) {
    for (Value* value : named_values(graph)) graph.add_output(*value);
  }
  ~Held() {
    while (graph_.outputs().size() > outputs_) graph_.remove_output(graph_.outputs().size() - 1);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Graph& graph_;
  std::size_t outputs_;  ///< of its own
};

/// A branch or body can have no further outputs for what is named in it: it stays as it is.
int run_everywhere(const Pass& pass, Graph& graph, Context& context) {
  int changes = pass.run(graph, context);
  if (!graph.holds_graphs()) return changes;
  std::vector<Graph*> nested;
  for (const auto& node : graph.nodes()) {
    for (Graph* inner : node->subgraphs())
      if (named_values(*inner).empty()) nested.push_back(inner);
  }
  for (Graph* inner : nested) changes += run_everywhere(pass, *inner, context);
  return changes;
}

}  // namespace

int run_held(const Pass& pass, Graph& graph, Context& context) {
  const Held held(graph);
  return pass.whole_model ? pass.run(graph, context) : run_everywhere(pass, graph, context);
}

}  // namespace modelflow
