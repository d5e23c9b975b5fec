// Rounded one by one, weights are each as near as can be, and their product is not: what calibration saw says which
// errors add up and how the weights that are rounded later make up for them.
#include <algorithm>
#include <array>

#include "passes/graph/edits.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

Verdict fits(const Node& node, const Rounding& rounding) {
  if (!rounding.steps) return no(rounding.why_not);
  const Tensor* steps = weights_in(node)->constant();
  if (!steps || steps->dtype() != rounding.steps->dtype() || steps->dims() != rounding.steps->dims())
    return no("has other weights than were rounded", weights_in(node)->name());
  return yes();
}

int run(Graph& graph, Context& context) {
  if (!context.plan) return 0;
  int changes = 0;
  for (const auto& node : graph.nodes()) {
    constexpr std::array kForms = {Form::i8, Form::i4, Form::weight_only};
    if (std::ranges::none_of(kForms, [&](Form form) { return computes(*node, Family::product, form); })) continue;
    const auto found = context.plan->roundings.find(node->name);
    if (found == context.plan->roundings.end()) continue;
    if (const Verdict verdict = fits(*node, found->second); !verdict) {
      context.miss("compensate-rounding", node.get(), verdict.reason);
      continue;
    }
    set_constant(*node, *weights_place(*node), *found->second.steps);
    context.hit("compensate-rounding");
    ++changes;
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass compensate_rounding() {
  return {
      .name = "compensate-rounding",
      .doc = "Weights of products rounded so that later ones make up for the errors of earlier ones, by calibration",
      .run = run};
}

}  // namespace modelflow::passes
