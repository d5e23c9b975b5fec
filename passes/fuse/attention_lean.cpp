// Masks without what only widens them: the fused op broadcasts, so that a mask of one row for all queries stays one
// row.
#include <algorithm>

#include "passes/facts.h"
#include "passes/fuse/attention_scores.h"

namespace modelflow::passes {
namespace {

/// A Range that begins at 0 or above, under any view.
bool counts_up(const Value& value) {
  const Node* range = range_behind(value);
  if (!range) return false;
  const std::optional<double> start = const_number(range->input(0)), step = const_number(range->input(2));
  return start && step && *start >= 0 && *step > 0;
}

bool is_all_true(const Value& value) {
  if (value.constant()) return holds_everywhere(*value.constant());
  const Node* node = value.producer();
  if (!node || !node->domain().empty()) return false;
  if (node->is("And")) return is_all_true(*node->input(0)) && is_all_true(*node->input(1));
  if (node->is("GreaterOrEqual")) {
    const std::optional<double> bound = const_number(node->input(1));
    return bound && *bound <= 0 && counts_up(*node->input(0));
  }
  const bool view =
      node->is("Cast") || node->is("Identity") || node->is("Expand") || node->is("Unsqueeze") || node->is("Reshape");
  return view && node->input(0)->dtype() == DType::boolean && is_all_true(*node->input(0));
}

}  // namespace

const Node* range_behind(const Value& value) {
  const Node* node = value.producer();
  while (node && (node->is("Unsqueeze") || node->is("Reshape") || node->is("Identity") || node->is("Cast")))
    node = node->input(0)->producer();
  return node && node->is("Range") ? node : nullptr;
}

bool holds_everywhere(const Tensor& condition) {
  if (condition.dtype() != DType::boolean) return false;
  const auto values = condition.as<bool>();
  return std::all_of(values.begin(), values.end(), [](bool v) { return v; });
}

Value& lean(Value& mask) {
  Node* node = mask.producer();
  if (!node || !node->domain().empty() || &node->graph() != &mask.graph()) return mask;
  if (node->is("Expand") && rank_of(node->input(0)).value_or(0) >= 2) return lean(*node->input(0));
  if (!node->is("And")) return mask;
  for (const std::size_t i : {0, 1})
    if (is_all_true(*node->input(i)) && rank_of(node->input(1 - i)).value_or(0) >= 2) return lean(*node->input(1 - i));
  return mask;
}

}  // namespace modelflow::passes
