// Moves floats by some last digits: inputs, and the constants of a model.
#include "src/verify/nudge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "modelflow/modelflow.h"
#include "src/verify/element.h"

namespace modelflow {
namespace {

/// Beyond it a digit more is infinite.
bool is_at_the_end(double x, DType dtype) {
  return dtype == DType::f32 && std::abs(x) >= static_cast<double>(std::numeric_limits<float>::max()) * (1 - 0x1p-20);
}

/// Signs from a linear congruential generator; its high bits are as good as any for that.
class Nudge {
 public:
  Nudge(double digits, unsigned seed) : step_(digits * 0x1p-23), state_(seed * 2654435761U + 1) {}

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
    return is_at_the_end(value, dtype) ? value : value * (1 + (state_ >> 31 ? step_ : -step_));
  }

  double step_;
  std::uint32_t state_;
};

/// A digit less would take a row from a result, or its value from a power of a negative number.
bool decides_extents_or_domain(const Value& value) {
  return std::ranges::any_of(value.uses(), [](const Use& use) {
    const auto ops = {"Resize", "Upsample", "Range", "Pow", "OneHot", "Loop", "Scan", "If"};
    return std::ranges::any_of(ops, [&](const char* op) { return use.node->is(op); });
  });
}

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

Feeds nudged(const Feeds& feeds, double digits, unsigned seed) {
  Feeds moved;
  Nudge nudge(digits, seed);
  for (const auto& [name, tensor] : feeds) moved[name] = nudge(tensor);
  return moved;
}

Model with_nudged_constants(const Model& model, double digits, unsigned seed) {
  Model moved = inline_functions(model);
  Nudge nudge(digits, seed + kNudges);
  nudge_constants(moved.graph(), nudge);
  return moved;
}

}  // namespace modelflow
