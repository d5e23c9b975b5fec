// ConvTranspose becomes ours only where it runs channels last; then the activation behind it goes into it.
#include "passes/fuse/epilogue.h"
#include "passes/layout/layout.h"

namespace modelflow::passes {
namespace {

int run(Graph& graph, Context& context) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) {
    if (node->is("modelflow.ConvTranspose")) nodes.push_back(node.get());
  }
  if (nodes.empty()) return 0;
  Extents extents(graph);
  int changes = 0;
  for (Node* node : nodes) changes += absorb_epilogue(node, context, extents, "conv-transpose");
  return changes;
}

}  // namespace

Pass absorb_activations() {
  return {.name = "absorb-activations",
          .doc = "An activation behind a channels-last ConvTranspose becomes part of it",
          .run = run};
}

}  // namespace modelflow::passes
