// Values between ops that multiply bfloat16 are kept in it: half the bytes, and nothing to round where they are read.
// Where all readers round anyway nothing changes; residual sums of convolutions are rounded once more. A value that
// anything else reads stays in float32, so no Cast is ever added.
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/quantize/faster.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

/// What a fused op becomes when it writes bfloat16, null when it cannot: the form of one that multiplies in it, or of
/// one that does not multiply.
const FusedOp* form_to_bf16(const Node& node) {
  const FusedOp* op = fused_op(node);
  if (!op || !node.attrs.integer("round_a", 1)) return nullptr;
  const bool moves = op->form == Form::f32 && !in_form(*op, Form::bf16);
  return op->form == Form::bf16 || moves ? in_form(*op, Form::bf16_result) : nullptr;
}

/// Shows the same numbers in the same order, in any type.
bool only_renames(const Node& node) { return node.is("Identity") || (is_view(node) && !node.is("Transpose")); }

bool takes_any_type(const FusedOp& op, std::size_t input) {
  return input_type(op, input, DType::f32) == DType::undefined;
}

class Bf16Values {
 public:
  Bf16Values(Graph& graph, Context& context) : graph_(graph), context_(context) {}

  int run() {
    for (const auto& node : graph_.nodes())
      if ((form_to_bf16(*node) || only_renames(*node)) && node->output()->dtype() == DType::f32 &&
          !node->output()->is_graph_output())
        chosen_.insert(node->output());
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& node : graph_.nodes()) {
        if (node->outputs().empty() || !chosen_.contains(node->output())) continue;
        const Verdict verdict = fits(*node);
        if (verdict) continue;
        if (!only_renames(*node)) context_.miss("bf16-values", node.get(), verdict.reason);
        chosen_.erase(node->output());
        changed = true;
      }
    }
    for (const auto& node : graph_.nodes()) {
      if (node->outputs().empty() || !chosen_.contains(node->output())) continue;
      node->output()->type.dtype = DType::bf16;
      if (const FusedOp* form = form_to_bf16(*node)) graph_.set_op(*node, "modelflow." + std::string(form->kind));
    }
    if (!chosen_.empty()) context_.hit("bf16-values", static_cast<int>(chosen_.size()));
    return static_cast<int>(chosen_.size());
  }

 private:
  Verdict fits(const Node& node) const {
    const Value& value = *node.output();
    if (only_renames(node) && !chosen_.contains(node.input(0))) return no("shows float32", node.input(0)->name());
    for (const Use& use : value.uses())
      if (!reads(use)) return no(use.node->op() + " reads float32", value.name());
    return only_renames(node) ? yes() : pays(node);
  }

  bool reads(const Use& use) const {
    const Node& node = *use.node;
    if (&node.graph() != &graph_) return false;
    const FusedOp* op = fused_op(node);
    if (op && op->form == Form::bf16) {
      const bool followed = use.index == 0 || use.index == place_of(node, "residual");
      return form_to_bf16(node) && followed && takes_any_type(*op, use.index);
    }
    return (only_renames(node) || form_to_bf16(node)) && use.index == 0 && chosen_.contains(node.output());
  }

  /// Some kernel does it, and not more slowly than what runs now. Planning for less than half of the operands does not
  /// ask who else changes: these kernels take either type.
  Verdict pays(const Node& node) const {
    const Call now = call_of(node);
    Call then = now;
    then.op = form_to_bf16(node)->kind;
    then.outputs[0].dtype = DType::bf16;
    for (std::size_t i = 0; i < then.inputs.size(); ++i)
      if (chosen_.contains(node.input(i))) then.inputs[i].dtype = DType::bf16;
    const Costs costs = costs_of(now, then, context_.target);
    if (!costs.taken) return costs.taken;
    return costs.after <= costs.before ? yes() : no("is slower with a result in bfloat16");
  }

  Graph& graph_;
  Context& context_;
  std::unordered_set<const Value*> chosen_;
};

}  // namespace

Pass bf16_values() {
  return {.name = "bf16-values",
          .doc = "Values between ops that multiply bfloat16 are kept in it (ConvToBf16, MatMulToBf16, PoolBf16)",
          .run = [](Graph& graph, Context& context) { return Bf16Values(graph, context).run(); }};
}

}  // namespace modelflow::passes
