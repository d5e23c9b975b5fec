#include "passes/quantize/faster.h"

#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"
#include "passes/fuse/epilogue.h"

namespace modelflow::passes {

CostShare cost_share(const Call& before, const Call& after, const Target& target) {
  const Choice now = choose_kernel(before, target), then = choose_kernel(after, target);
  if (!then.kernel) return {no(then.reason)};
  if (!now.kernel) return {yes()};
  return {yes(), then.kernel->cost(after, target) / now.kernel->cost(before, target)};
}

Node* make_faster(Graph& graph, Context& context, std::string_view rule, std::string_view op,
                  std::vector<Value*> inputs, Attrs attrs, Node& node) {
  const std::size_t outputs = node.outputs().size();
  Node* made = make_fused(graph, context, rule, op, std::move(inputs), std::move(attrs), node, outputs);
  if (!made) return nullptr;
  if (cost_share(call_of(node), call_of(*made), context.target).share >= 1) {
    context.miss(rule, &node, "is not faster in low precision on this target");
    graph.erase(*made);
    return nullptr;
  }
  made->doc = node.doc;
  for (std::size_t i = 0; i < outputs; ++i) graph.replace(*node.output(i), *made->output(i));
  graph.erase(node);
  return made;
}

}  // namespace modelflow::passes
