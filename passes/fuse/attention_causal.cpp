// Is a boolean [..., queries, keys] exactly "key <= query", or a mask of numbers that and nothing else?
#include <functional>

#include "passes/fuse/attention_scores.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// One matrix whose numbers where key <= query pass `inside`, all others `outside`.
template <class T, class Inside, class Outside>
bool is_triangle(const Tensor& tensor, Inside inside, Outside outside) {
  if (tensor.dtype() != dtype_of<T> || tensor.rank() < 2) return false;
  const auto rows = static_cast<std::size_t>(tensor.dims()[tensor.rank() - 2]);
  const auto columns = static_cast<std::size_t>(tensor.dims().back());
  // One row or one column would be repeated for all.
  if (rows < 2 || columns < 2 || rows * columns != static_cast<std::size_t>(tensor.elements())) return false;
  const auto values = tensor.as<T>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(i % columns <= i / columns ? inside(values[i]) : outside(values[i]))) return false;
  return true;
}

/// Tensors of ones of any shape.
bool is_all_ones(const Value* value) {
  if (!value) return false;
  if (const_number(value) == 1.0) return true;
  if (value->constant()) return holds_everywhere(*value->constant());
  const Node* node = value->producer();
  if (!node) return false;
  if (node->is("Expand") || node->is("Cast") || node->is("Identity")) return is_all_ones(node->input(0));
  if (!node->is("ConstantOfShape")) return false;
  const Tensor* fill = node->attrs.tensor("value");
  return fill && fill->elements() == 1 &&
         (fill->dtype() == DType::boolean ? fill->as<bool>()[0] : fill->to_doubles()[0] == 1);
}

/// 0, 1, 2, ... along the axis that is `from_end` axes before the last, all other extents 1.
bool counts_along(const Value* value, std::size_t from_end) {
  const Node* range = value ? range_behind(*value) : nullptr;
  if (!range || const_number(range->input(0)) != 0.0 || const_number(range->input(2)) != 1.0) return false;
  if (!value->shape().has_rank() || value->shape().rank() <= from_end) return false;
  for (std::size_t i = 0; i < value->shape().rank(); ++i) {
    const bool counted = i + 1 + from_end == value->shape().rank();
    if (!counted && value->shape()[i].number() != 1) return false;
  }
  return true;
}

/// All extents but the last two are 1.
bool leads_with_ones(const Value& value) {
  if (!value.shape().has_rank()) return false;
  for (std::size_t i = 0; i + 2 < value.shape().rank(); ++i)
    if (value.shape()[i].number() != 1) return false;
  return true;
}

bool rows(const Value* value) { return counts_along(value, 1); }
bool columns(const Value* value) { return counts_along(value, 0); }

/// Ones, of any type, and where the upper triangle was, zeros.
bool is_lower_triangle(const Node& node) {
  return node.is("Trilu") && node.attrs.integer("upper", 1) == 0 &&
         (!node.input(1) || const_number(node.input(1)) == 0.0) && is_all_ones(node.input(0));
}

}  // namespace

bool is_causal(const Value& allowed) {
  if (allowed.constant()) return is_triangle<bool>(*allowed.constant(), std::identity(), std::logical_not());
  const Node* node = allowed.producer();
  if (!node || !node->domain().empty()) return false;
  const Value *a = node->input(0), *b = node->input(1);
  if (node->is("Cast") || node->is("Identity")) return is_causal(*a);
  if (node->is("Unsqueeze")) return leads_with_ones(allowed) && is_causal(*a);
  if (node->is("LessOrEqual")) return columns(a) && rows(b);
  if (node->is("GreaterOrEqual")) return rows(a) && columns(b);
  return is_lower_triangle(*node) || (node->is("Not") && is_later(*a));
}

bool is_later(const Value& hidden) {
  if (hidden.constant()) return is_triangle<bool>(*hidden.constant(), std::logical_not(), std::identity());
  const Node* node = hidden.producer();
  if (!node || !node->domain().empty()) return false;
  const Value *a = node->input(0), *b = node->input(1);
  if (node->is("Not")) return is_causal(*a);
  if (node->is("Greater")) return columns(a) && rows(b);
  if (node->is("Less")) return rows(a) && columns(b);
  const Node* triangle = node->is("Equal") && const_number(b) == 0.0 ? a->producer() : nullptr;
  return triangle && triangle->domain().empty() && is_lower_triangle(*triangle);
}

std::optional<float> causal_bias(const Value& bias) {
  if (const Node* node = bias.producer()) {
    if (node->is("Identity") || (node->is("Unsqueeze") && leads_with_ones(bias))) return causal_bias(*node->input(0));
    if (!node->is("Where")) return {};
    const std::optional<double> then = const_number(node->input(1)), otherwise = const_number(node->input(2));
    if (!then || !otherwise) return {};
    if (*otherwise <= kLow && *then == 0 && is_causal(*node->input(0))) return static_cast<float>(*otherwise);
    if (*then <= kLow && *otherwise == 0 && is_later(*node->input(0))) return static_cast<float>(*then);
    return {};
  }
  if (!bias.constant() || bias.constant()->dtype() != DType::f32 || bias.constant()->elements() < 2) return {};
  const float low = bias.constant()->as<float>()[1];  // the second key of the first query
  const auto shows = [](float v) { return v == 0; };
  const auto hides = [low](float v) { return v == low; };
  return low <= kLow && is_triangle<float>(*bias.constant(), shows, hides) ? std::optional(low) : std::nullopt;
}

}  // namespace modelflow::passes
