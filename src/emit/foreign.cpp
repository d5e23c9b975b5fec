// Functions in our domain that somebody else wrote.
#include "src/emit/foreign.h"

#include <algorithm>
#include <set>

#include "modelflow/error.h"
#include "modelflow/function.h"
#include "modelflow/kernel.h"
#include "modelflow/pass.h"
#include "src/emit/body.h"
#include "src/emit/emit.h"
#include "src/text/equal.h"

namespace modelflow {
namespace {

/// A model of nothing but the function, as two can be compared.
Model alone(const Function& function, std::int64_t opset) {
  Model model;
  model.opsets = {{"", opset}};
  model.functions.push_back(function);
  return model;
}

/// Whether it says what we would write for this call.
bool ours(const Function& function, const Node& call, std::int64_t opset) {
  const std::string_view kind = kind_of(call.op(), call.attrs);
  const FusedOp* op = kind.empty() ? nullptr : find_fused_op(kind);
  if (!op || function.body->outputs().size() != call.outputs().size()) return false;
  try {
    Call said = call_of(call);
    said.op = kind;
    const Function made = make_function(function.name, body_text(*op, said, static_cast<int>(opset)), opset);
    return equal(alone(made, opset), alone(function, opset));
  } catch (const Error&) {
    return false;  // it lacks operands that ours has
  }
}

void collect(const Graph& graph, const Model& model, std::set<std::string>& foreign) {
  for (const auto& node : graph.nodes()) {
    const Function* function = node->domain() == kDomain ? find_function(model, *node) : nullptr;
    if (function && !ours(*function, *node, model.opset())) foreign.insert(function->name);
    for (const Graph* inner : node->subgraphs()) collect(*inner, model, foreign);
  }
}

}  // namespace

std::optional<Model> without_foreign_functions(const Model& model) {
  const bool any = std::ranges::any_of(model.functions, [](const Function& f) { return f.domain == kDomain; });
  if (!any) return {};
  Model typed = model;
  infer_types(typed);
  std::set<std::string> foreign;
  collect(typed.graph(), typed, foreign);
  for (const Function& function : typed.functions)
    if (function.domain != kDomain) collect(*function.body, typed, foreign);
  if (foreign.empty()) return {};
  Model plain = model;
  absorb_functions(plain);
  return plain;
}

}  // namespace modelflow
