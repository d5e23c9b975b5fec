// Masks without what only widens them: the fused op broadcasts, so that a mask of one row for all queries stays one
// row.
#include <algorithm>

#include "passes/fuse/attention_scores.h"
#include "passes/graph/facts.h"

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

/// Wherever `wide` is wider than `mask`, the scores are as wide.
bool no_wider(const Value& wide, const Value& mask, const Shape& scores) {
  const Shape &shape = wide.shape(), &less = mask.shape();
  if (!shape.has_rank() || !scores.has_rank() || shape.rank() > scores.rank()) return false;
  for (std::size_t i = 1; i <= shape.rank(); ++i) {
    const Dim& dim = shape[shape.rank() - i];
    const bool kept = i <= less.rank() && dim == less[less.rank() - i];
    if (!kept && !(dim.number() == 1) && !(dim == scores[scores.rank() - i])) return false;
  }
  return true;
}

/// A Cast between types that hold every position: fewer bits would wrap around or round.
bool keeps_counts(const Node& node) {
  const auto wide = [](DType type) {
    return type == DType::i32 || type == DType::i64 || type == DType::f32 || type == DType::f64;
  };
  return node.is("Cast") && wide(node.input(0)->dtype()) && wide(static_cast<DType>(node.attrs.integer("to")));
}

}  // namespace

const Node* range_behind(const Value& value) {
  const Node* node = value.producer();
  while (node && (node->is("Unsqueeze") || node->is("Reshape") || node->is("Identity") || keeps_counts(*node)))
    node = node->input(0)->producer();
  return node && node->is("Range") ? node : nullptr;
}

bool holds_everywhere(const Tensor& condition) {
  if (condition.dtype() != DType::boolean) return false;
  const auto values = condition.as<bool>();
  return std::all_of(values.begin(), values.end(), [](bool v) { return v; });
}

Value& lean(Value& mask, const Shape* scores) {
  Node* node = mask.producer();
  if (!node || !node->domain().empty() || &node->graph() != &mask.graph()) return mask;
  const auto inner = [&](Value* value) -> Value* {
    return rank_of(value).value_or(0) >= 2 && (!scores || no_wider(mask, *value, *scores)) ? value : nullptr;
  };
  if (node->is("Expand"))
    if (Value* value = inner(node->input(0))) return lean(*value, scores);
  if (!node->is("And")) return mask;
  for (const std::size_t i : {0, 1})
    if (is_all_true(*node->input(i)))
      if (Value* value = inner(node->input(1 - i))) return lean(*value, scores);
  return mask;
}

}  // namespace modelflow::passes
