// Nodes and outputs that nobody reads go.
#include <array>

#include "passes/clean/clean.h"

namespace modelflow::passes {

namespace {

struct Optional {
  std::string_view op;
  std::size_t first;  ///< outputs from here on may be left out
};
constexpr std::array<Optional, 7> optional_outputs = {
    {{"MaxPool", 1}, {"Dropout", 1}, {"LayerNormalization", 1}, {"LSTM", 0}, {"GRU", 0}, {"RNN", 0}, {"Unique", 1}}};

bool unread(const Value* value) { return value && value->uses().empty() && !value->is_graph_output(); }

/// Outputs that nobody reads are not asked for: kernels skip the work.
int drop_outputs(Graph& graph) {
  int changes = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->domain().empty()) continue;
    for (const Optional& optional : optional_outputs) {
      if (node->op() != optional.op) continue;
      for (std::size_t i = optional.first; i < node->outputs().size(); ++i) {
        Value* value = node->output(i);
        if (!unread(value)) continue;
        graph.set_output(*node, i, nullptr);
        ++changes;
      }
    }
  }
  return changes;
}

}  // namespace

Pass prune() {
  return {.name = "prune",
          .doc = "Removes nodes, initializers and optional outputs that nothing reads.",
          .run = [](Graph& graph, Context& context) {
            const std::size_t constants = graph.initializers().size();
            const int nodes = static_cast<int>(graph.prune());
            const int values = static_cast<int>(constants - graph.initializers().size());
            const int outputs = drop_outputs(graph);
            if (nodes) context.hit("unread-node", nodes);
            if (values) context.hit("unread-initializer", values);
            if (outputs) context.hit("unread-output", outputs);
            return nodes + values + outputs;
          }};
}

}  // namespace modelflow::passes
