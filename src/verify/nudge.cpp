// Moves floats by some last digits: inputs, and the constants of a model.
#include "src/verify/nudge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_set>

#include "modelflow/modelflow.h"
#include "src/verify/element.h"

namespace modelflow {
namespace {

/// Beyond it a digit more is infinite.
bool is_at_the_end(double x, DType dtype) {
  return dtype == DType::f32 && std::abs(x) >= static_cast<double>(std::numeric_limits<float>::max()) * (1 - 0x1p-20);
}

/// Signs from a linear congruential generator; its high bits are as good as any for that. Or all alike.
class Nudge {
 public:
  Nudge(double digits, unsigned seed) : step_(digits * 0x1p-23), state_(seed * 2654435761U + 1) {}
  Nudge(double digits, bool up) : step_(digits * 0x1p-23), up_(up) {}

  Tensor operator()(const Tensor& tensor) {
    if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64) return tensor;
    const std::vector<double> values = tensor.to_doubles();
    return Tensor::make(tensor.dtype(), tensor.dims(), [&](std::byte* out) {
      for (std::size_t i = 0; i < values.size(); ++i)
        store_element(tensor.dtype(), out, static_cast<std::int64_t>(i), moved(values[i], tensor.dtype()));
    });
  }

 private:
  double moved(double value, DType dtype) {
    state_ = state_ * 1664525U + 1013904223U;
    const bool up = up_.value_or(state_ >> 31);
    return is_at_the_end(value, dtype) ? value : value * (1 + (up ? step_ : -step_));
  }

  double step_;
  std::uint32_t state_ = 0;
  std::optional<bool> up_ = {};
};

bool is_any_of(const Node& node, std::initializer_list<const char*> ops) {
  return std::ranges::any_of(ops, [&](const char* op) { return node.is(op); });
}

/// A digit less would take a row from a result, or its value from a power of a negative number.
bool decides(const Use& use) {
  if (is_any_of(*use.node, {"Resize", "Upsample", "OneHot", "Pow"})) return use.index > 0;
  return is_any_of(*use.node, {"Range", "Loop", "Scan", "If"});
}

/// Whether the numbers that a node reads are what it gives, or, where they are few (factors), what its results follow.
bool hands_on(const Node& node) {
  if (is_any_of(node, {"Identity", "Cast", "Concat", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Gather"}))
    return true;
  const Value* output = node.output();
  return output && output->type.shape.has_rank() && output->type.shape.rank() <= 1;
}

constexpr unsigned kAlike = 4;  // tries in which all go one way: feeds and constants with or against each other

void nudge_constants(Graph& graph, Nudge& nudge) {
  for (Value* value : graph.initializers())
    if (value->constant() && !decides_extents_or_domain(*value))
      graph.set_initializer(*value, nudge(*value->constant()));
  for (const auto& node : graph.nodes()) {
    const Tensor* tensor = node->is("Constant") && node->output() ? node->attrs.tensor("value") : nullptr;
    if (tensor && !decides_extents_or_domain(*node->output())) node->attrs.set("value", Attr(nudge(*tensor)));
    for (Graph* inner : node->subgraphs()) nudge_constants(*inner, nudge);
  }
}

}  // namespace

bool decides_extents_or_domain(const Value& value) {
  std::unordered_set<const Value*> seen = {&value};
  std::vector<const Value*> left = {&value};
  while (!left.empty()) {
    const Value* moved = left.back();
    left.pop_back();
    for (const Use& use : moved->uses()) {
      if (decides(use)) return true;
      for (const Value* output : use.node->outputs())
        if (hands_on(*use.node) && output && seen.insert(output).second) left.push_back(output);
    }
  }
  return false;
}

Feeds nudged(const Model& model, const Feeds& feeds, double digits, unsigned seed) {
  Feeds moved;
  Nudge nudge = seed < kAlike ? Nudge(digits, seed % 2 == 0) : Nudge(digits, seed);
  for (const auto& [name, tensor] : feeds) {
    const Value* input = model.graph().find(name);
    moved[name] = input && decides_extents_or_domain(*input) ? tensor : nudge(tensor);
  }
  return moved;
}

Model with_nudged_constants(const Model& model, double digits, unsigned seed) {
  Model moved = inline_functions(model);
  Nudge nudge = seed < kAlike ? Nudge(digits, seed == 1 || seed == 2) : Nudge(digits, seed + kNudges);
  nudge_constants(moved.graph(), nudge);
  return moved;
}

}  // namespace modelflow
