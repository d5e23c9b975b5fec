// If with a constant condition gives way to the branch that is taken.
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"
#include "passes/graph/inliner.h"

namespace modelflow::passes {

namespace {

int inline_constant_branches(Graph& graph, Context& context) {
  const std::vector<Node*> nodes = nodes_of(graph, {"If"});
  int changes = 0;
  for (Node* node : nodes) {
    const std::optional<Ints> condition = const_ints(node->input(0));
    if (!condition || condition->size() != 1) {
      context.miss("constant-if", node, "its condition is not constant");
      continue;
    }
    const Subgraph* branch = node->attrs.graph(condition->front() ? "then_branch" : "else_branch");
    if (!branch || (*branch)->outputs().size() < node->outputs().size() || !(*branch)->pinned.empty()) continue;
    Inliner inliner(graph, *node);
    inliner.move(**branch);
    for (std::size_t i = 0; i < node->outputs().size(); ++i) {
      if (!node->output(i)) continue;
      Value* result = inliner.moved((*branch)->outputs()[i]);
      // A graph output stays the output of a node.
      if (node->output(i)->is_graph_output() && (!result->producer() || &result->graph() != &graph))
        result = graph.add("Identity", {result}, {.before = node}).output();
      graph.replace(*node->output(i), *result);
    }
    graph.erase(*node);
    context.hit("constant-if");
    ++changes;
  }
  return changes;
}

}  // namespace

Pass inline_branches() {
  return {.name = "inline-branches",
          .doc = "Puts the branch that a constant condition takes in place of the If.",
          .run = inline_constant_branches};
}

}  // namespace modelflow::passes
