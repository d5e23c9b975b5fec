#include "passes/quantize/faster.h"

#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"
#include "passes/fuse/epilogue.h"

namespace modelflow::passes {

Node* make_faster(Graph& graph, Context& context, std::string_view rule, std::string_view op,
                  std::vector<Value*> inputs, Attrs attrs, Node& node) {
  const std::size_t outputs = node.outputs().size();
  Node* made = make_fused(graph, context, rule, op, std::move(inputs), std::move(attrs), node, outputs);
  if (!made) return nullptr;
  const Call before = call_of(node), after = call_of(*made);
  const Kernel* plain = choose_kernel(before, context.target).kernel;
  const Kernel* other = choose_kernel(after, context.target).kernel;
  if (plain && other->cost(after, context.target) >= plain->cost(before, context.target)) {
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
