// Extents behind convolutions, and symbols of bounds that they decide.
#include "src/onnx/needless_bounds.h"

#include <algorithm>
#include <string>

#include "modelflow/function.h"
#include "modelflow/kernel.h"
#include "modelflow/pass.h"
#include "src/onnx/derived.h"
#include "src/onnx/floor.h"

namespace modelflow {
namespace {

bool is_convolution(const Node& node) {
  const FusedOp* op = fused_op(node);
  return op ? op->family == Family::convolution : node.is("Conv");
}

/// `dim` with `extent` in place of a symbol of the first degree; as it is where it has powers of it.
Dim replaced(const Dim& dim, const std::string& symbol, const Dim& extent) {
  const Dim rest = dim.with({{symbol, 0}}), factor = dim.with({{symbol, 1}}) - rest;
  const Dim result = rest + factor * extent;
  return rest + factor * Dim::symbol(symbol) == dim && !result.unknown() ? result : dim;
}

}  // namespace

NeedlessBounds::NeedlessBounds(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    const Value* y = is_convolution(*node) ? node->output() : nullptr;
    if (!y || y->uses().empty() || !y->type.is_tensor() || !y->shape().has_rank()) continue;
    // Those of windows: of the batch a convolution says nothing, and channels are numbers.
    for (std::size_t axis = 1; axis < y->shape().rank(); ++axis) add(y->shape()[axis]);
  }
}

void NeedlessBounds::add(const Dim& extent) {
  if (extent.unknown() || never_negative(extent) || std::ranges::count(extents_, extent) > 0) return;
  extents_.push_back(extent);
}

/// What a symbol of a bound stands for, 0 where it bounds what is never above 0; unknown where it is a bound indeed.
Dim NeedlessBounds::meaning(const std::string& symbol) const {
  if (!symbol.starts_with(kDerived)) return {};
  const auto bounded = bounded_by(symbol);
  for (const Dim& extent : extents_) {
    const Dim negative = Dim(0) - extent;
    if (bounded && never_negative(*bounded - extent)) return *bounded;
    if (bounded && never_negative(negative - *bounded)) return 0;
    if (!bounded && derived_symbol("pos", extent) == Dim::symbol(symbol)) return extent;
    if (!bounded && derived_symbol("pos", negative) == Dim::symbol(symbol)) return 0;
  }
  return {};
}

Dim NeedlessBounds::without(const Dim& dim) const {
  Dim result = dim;
  if (extents_.empty() || dim.known()) return dim;
  for (const std::string& symbol : dim.symbols())
    if (const Dim extent = meaning(symbol); !extent.unknown()) result = replaced(result, symbol, extent);
  return result;
}

bool NeedlessBounds::stand_in(const Graph& graph) const {
  const auto bounded = [&](const Value* value) {
    return value && value->type.is_tensor() && value->shape().has_rank() &&
           std::ranges::any_of(value->shape().dims(),
                               [&](const Dim& dim) { return !dim.unknown() && !(without(dim) == dim); });
  };
  return !extents_.empty() && std::ranges::any_of(graph.nodes(), [&](const auto& node) {
    return std::ranges::any_of(node->outputs(), bounded) ||
           std::ranges::any_of(node->subgraphs(), [&](const Graph* inner) { return stand_in(*inner); });
  });
}

}  // namespace modelflow
