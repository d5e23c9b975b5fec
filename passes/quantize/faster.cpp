// Nodes in lower precision take the place of others where their kernel is faster.
#include "passes/quantize/faster.h"

#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"
#include "passes/graph/edits.h"

namespace modelflow::passes {

Costs costs_of(const Call& before, const Call& after, const Target& target) {
  const Choice now = choose_kernel(before, target), then = choose_kernel(after, target);
  Costs costs;
  if (!then.kernel) {
    costs.taken = no(then.reason);
    return costs;
  }
  costs.after = then.kernel->cost(after, target);
  if (now.kernel) costs.before = now.kernel->cost(before, target);
  return costs;
}

Node* make_faster(Graph& graph, Context& context, std::string_view rule, std::string_view op,
                  std::vector<Value*> inputs, Attrs attrs, Node& node, TypicalSizes& sizes) {
  const std::size_t outputs = node.outputs().size();
  Node* made = make_fused(graph, context, rule, op, std::move(inputs), std::move(attrs), node, outputs);
  if (!made) return nullptr;
  const DType half = half_type(context.options);
  Call before = sizes.call(node), after = sizes.call(*made);
  after.outputs = before.outputs;
  if (half != DType::undefined) before = in_type(before, half), after = in_type(after, half);
  if (const Costs costs = costs_of(before, after, context.target); costs.after >= costs.before) {
    context.miss(rule, &node, "is not faster in low precision on this target");
    graph.erase(*made);
    return nullptr;
  }
  made->doc = node.doc;
  for (std::size_t i = 0; i < outputs; ++i) {
    sizes.replace(*made->output(i), *node.output(i));
    graph.replace(*node.output(i), *made->output(i));
  }
  graph.erase(node);
  return made;
}

}  // namespace modelflow::passes
