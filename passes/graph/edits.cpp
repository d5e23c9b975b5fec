#include "passes/graph/edits.h"

#include "modelflow/function.h"
#include "modelflow/modelflow.h"

namespace modelflow::passes {

Node* make_fused(Graph& graph, Context& context, std::string_view rule, std::string_view op, std::vector<Value*> inputs,
                 Attrs attrs, Node& before, std::size_t outputs) {
  Node& node = graph.add(op, std::move(inputs),
                         {.before = &before, .outputs = outputs, .attrs = std::move(attrs), .name = before.name});
  infer_types(node, context.model);
  const Choice choice = choose_kernel(call_of(node), context.target);
  const Verdict verdict = choice.kernel ? can_write(node, context.model.opset()) : no(choice.reason);
  if (verdict) return &node;
  context.miss(rule, &before, verdict.reason);
  graph.erase(node);
  return nullptr;
}

void set_constant(Node& node, std::size_t input, Tensor tensor) {
  Graph& graph = node.graph();
  const std::string stem = node.input(input)->name();
  graph.set_input(node, input, &graph.add_constant(std::move(tensor), stem));
}

}  // namespace modelflow::passes
