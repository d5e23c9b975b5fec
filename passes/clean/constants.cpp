// Constant nodes, and graph inputs that are weights, become initializers.
#include "modelflow/weights.h"
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

/// The tensor that a Constant node makes; nullopt for forms that are kept as they are (sparse, references).
std::optional<Tensor> constant_of(const Node& node) {
  const Attrs& attrs = node.attrs;
  if (const Tensor* value = attrs.tensor("value")) return *value;
  if (attrs.has("value_float")) return Tensor::scalar<float>(attrs.number("value_float"));
  if (attrs.has("value_int")) return Tensor::scalar<std::int64_t>(attrs.integer("value_int"));
  if (attrs.has("value_floats")) {
    const Floats values = attrs.floats("value_floats");
    return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
  }
  if (attrs.has("value_ints")) return tensor_of(attrs.ints("value_ints"));
  return std::nullopt;
}

int to_initializers(Graph& graph, Context& context) {
  const std::vector<Node*> nodes = nodes_of(graph, {"Constant"});
  int changes = 0;
  for (Node* node : nodes) {
    Value* out = node->output();
    // A graph output stays the output of a node: not every runtime accepts an initializer there.
    if (!out || out->is_graph_output()) continue;
    std::optional<Tensor> tensor = constant_of(*node);
    if (!tensor) {
      context.miss("constant-to-initializer", node, "its value is sparse, text or a reference");
      continue;
    }
    const std::string name = out->name();
    Value& value = graph.add_constant(std::move(*tensor), name);
    graph.replace(*out, value);
    graph.erase(*node);
    ++changes;
  }
  if (changes) context.hit("constant-to-initializer", changes);
  return changes + (graph.parent() ? 0 : unlist_weights(graph, context.model.ir_version));
}

}  // namespace

Pass constant_nodes() {
  return {.name = "constant-nodes", .doc = "Turns Constant nodes into initializers.", .run = to_initializers};
}

}  // namespace modelflow::passes
