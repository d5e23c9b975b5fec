// Calls of fused ops that come without their functions, checked.
#include "src/emit/fused_calls.h"

#include "modelflow/error.h"
#include "modelflow/function.h"
#include "modelflow/kernel.h"

namespace modelflow {
namespace {

void check(const Node& node) {
  const FusedOp* op = find_fused_op(kind_of(node.op(), node.attrs));
  if (!op) throw Error(ErrorKind::unsupported, "no fused op of this build").within(node.label());
  const auto given = static_cast<int>(node.inputs().size());
  if (given < op->min_inputs || given > op->max_inputs || node.outputs().empty() || !node.output(0))
    throw Error(ErrorKind::invalid_input, "it takes " + std::to_string(op->min_inputs) + " to " +
                                              std::to_string(op->max_inputs) + " inputs, not " + std::to_string(given) +
                                              ", and gives a result")
        .within(node.label());
}

void check(const Graph& graph, const Model& model) {
  for (const auto& node : graph.nodes()) {
    if (node->domain() == kDomain && !find_function(model, *node)) check(*node);
    for (const Graph* inner : node->subgraphs()) check(*inner, model);
  }
}

}  // namespace

void check_fused_calls(const Model& model) {
  check(model.graph(), model);
  for (const Function& function : model.functions) check(*function.body, model);
}

}  // namespace modelflow
