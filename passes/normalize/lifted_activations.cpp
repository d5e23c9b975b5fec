// An activation behind a convolution whose pixels became rows (SegFormer, PVT), or behind several that a Concat joins
// (MixNet): in front of these the convolution takes it.
#include "modelflow/modelflow.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/graph/joined.h"
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

/// The same activation of input `i` of `node`, in its place.
void put_before(Node& node, std::size_t i, const Node& activation, Context& context) {
  std::vector<Value*> inputs = activation.inputs();
  inputs[0] = node.input(i);
  const std::string domain(activation.domain());
  Build build(node.graph(), node, context);
  Value& y = build.op(domain.empty() ? activation.op() : domain + "." + activation.op(), inputs, activation.attrs);
  node.graph().set_input(node, i, &y);
}

bool lift(Node& activation, Context& context) {
  Value& moved = *activation.input(0);
  Node *view = first_view(moved), *concat = view ? nullptr : joined_convolutions(moved);
  if (!view && !concat) return false;
  if (view) put_before(*view, 0, activation, context);
  for (std::size_t i = 0; concat && i < concat->inputs().size(); ++i) put_before(*concat, i, activation, context);
  Graph& graph = activation.graph();
  graph.replace(*activation.output(), moved);
  graph.erase(activation);
  context.hit(view ? "activation-before-views" : "activation-before-concat");
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
  return {
      .name = "lift-activations",
      .doc =
          "An activation behind Reshapes and Transposes of a convolution, or a Concat of several -> in front of them",
      .run = run};
}

}  // namespace modelflow::passes
