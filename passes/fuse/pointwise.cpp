// What elementwise ops no product or norm has taken -> modelflow.Pointwise: trees of them whose inner results nobody
// else reads, so that the tensors pass through memory once.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/program.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::size_t kMostInputs = 8;

/// Constants, or a few steps from constants: clean-up folds what reads nothing else, or ONNX Runtime does.
bool are_settled(const std::vector<Value*>& values, std::set<const Value*>& seen, int steps = 4) {
  return std::ranges::all_of(values, [&](const Value* value) {
    if (!value || value->constant() || !seen.insert(value).second) return true;
    const Node* node = value->producer();
    return steps > 0 && node && node->domain().empty() && !node->inputs().empty() && deterministic(*node) &&
           are_settled(node->inputs(), seen, steps - 1);
  });
}

bool fuse_tree(const Tree& tree, Extents& extents, Context& context) {
  std::vector<Node*> nodes = tree.ordered();
  Node& sink = *nodes.back();
  const std::int64_t opset = context.model.opset();
  const std::vector<Value*> inputs = program_inputs(nodes, opset);
  if (std::set<const Value*> seen; are_settled(inputs, seen)) return false;
  Attrs attrs;
  attrs.set("program", program_of(nodes, inputs, opset));
  Graph& graph = sink.graph();
  Node* fused = make_fused(graph, context, "pointwise", "modelflow.Pointwise", inputs, std::move(attrs), sink);
  if (!fused) return false;
  for (Node* node : nodes) extents.forget(*node->output());
  graph.replace(*sink.output(), *fused->output());
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) graph.erase(**node);
  context.hit("pointwise");
  return true;
}

int run(Graph& graph, Context& context) {
  Extents extents;
  TypicalSizes sizes(context);  // of values that are here now: no tree asks for those that the others make
  const std::int64_t opset = context.model.opset();
  std::vector<Node*> sinks;  // last first: what a later tree takes in is no sink any more
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (is_elementwise_line(**node, opset)) sinks.push_back(node->get());
  }
  std::unordered_set<const Node*> taken;
  int changes = 0;
  for (Node* sink : sinks) {
    if (taken.contains(sink)) continue;
    Tree tree({sink}, extents, opset, &sizes);
    tree.grow(taken, kMostInputs);
    if (tree.nodes().size() < 2) continue;
    taken.insert(tree.nodes().begin(), tree.nodes().end());
    changes += fuse_tree(tree, extents, context);
  }
  return changes;
}

}  // namespace

Pass fuse_pointwise() {
  return {.name = "fuse-pointwise",
          .doc = "Trees of elementwise ops of one size that nothing else has taken -> modelflow.Pointwise",
          .run = run};
}

}  // namespace modelflow::passes
