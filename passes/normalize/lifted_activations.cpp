// An activation behind a convolution whose pixels became rows (SegFormer, PVT): in front of the views the convolution
// takes it.
#include "modelflow/modelflow.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

/// The first of the views that alone lead from a convolution to `value`; null when there are none.
Node* first_view(const Value& value) {
  Node* first = nullptr;
  for (const Value* at = &value; only_reader(*at);) {
    Node* node = at->producer();
    if (!node || &node->graph() != &value.graph()) return nullptr;
    if (node->is("Conv") || node->is("ConvTranspose")) return first;
    if (!is_view(*node)) return nullptr;
    first = node;
    at = node->input(0);
  }
  return nullptr;
}

bool lift(Node& activation, Context& context) {
  Value& moved = *activation.input(0);
  Node* view = first_view(moved);
  if (!view) return false;
  Graph& graph = activation.graph();
  std::vector<Value*> inputs = activation.inputs();
  inputs[0] = view->input(0);
  const std::string domain(activation.domain());
  Build build(graph, *view, context);
  Value& y = build.op(domain.empty() ? activation.op() : domain + "." + activation.op(), inputs, activation.attrs);
  graph.set_input(*view, 0, &y);
  graph.replace(*activation.output(), moved);
  graph.erase(activation);
  context.hit("activation-before-views");
  return true;
}

int run(Graph& graph, Context& context) {
  std::vector<Node*> activations;
  for (const auto& node : graph.nodes())
    if (node->output() && !node->inputs().empty() && node->input(0) && activation_of(*node))
      activations.push_back(node.get());
  int changes = 0;
  for (Node* node : activations) changes += lift(*node, context);
  return changes;
}

}  // namespace

Pass lift_activations() {
  return {.name = "lift-activations",
          .doc = "An activation behind Reshapes and Transposes of a convolution -> in front of them",
          .run = run};
}

}  // namespace modelflow::passes
