// A forward LSTM, GRU or RNN over a reversed sequence -> a reverse one over the sequence (flipped sequences in PyTorch,
// the backward layer of Keras' Bidirectional).
#include <algorithm>
#include <limits>

#include "modelflow/modelflow.h"
#include "passes/extents.h"
#include "passes/facts.h"
#include "passes/normalize/recurrent_directions.h"

namespace modelflow::passes {
namespace {

/// All elements along `axis` in the reverse order, nothing else.
bool reverses(const Node& node, std::int64_t axis) {
  const std::size_t rank = rank_of(node.input(0)).value_or(0);
  if (static_cast<std::size_t>(axis) >= rank) return false;
  const Dim& extent = node.input(0)->shape()[static_cast<std::size_t>(axis)];
  if (node.is("Slice")) {
    const std::optional<Ints> starts = const_ints(node.input(1)), ends = const_ints(node.input(2)),
                              axes = const_ints(node.input(3)), steps = const_ints(node.input(4));
    if (!starts || !ends || !axes || steps != Ints{-1} || axes->size() != 1) return false;
    // Exporters write a very low end for "to the first": the lowest 32-bit number at least.
    const std::int64_t most = extent.known() ? extent.value() : std::numeric_limits<std::int32_t>::max();
    const bool from_end = starts->front() == -1 || starts->front() >= most - (extent.known() ? 1 : 0);
    return positive(*axes, static_cast<std::int64_t>(rank)) == Ints{axis} && from_end && ends->front() < -most;
  }
  if (!node.is("ReverseSequence") || node.attrs.integer("time_axis", 0) != axis) return false;
  const std::optional<Ints> lengths = const_ints(node.input(1));
  return lengths && std::ranges::all_of(*lengths, [&](std::int64_t length) { return extent == Dim(length); });
}

/// The value that `value` is, reversed along `axis`; null when it is no such. Transposes are made anew on the way.
Value* reversed(Value& value, std::int64_t axis, Build& build) {
  Node* node = value.producer();
  if (!node || &node->graph() != &value.graph()) return nullptr;
  if (reverses(*node, axis)) return node->input(0);
  const Ints perm = node->attrs.ints("perm");
  if (!node->is("Transpose") || static_cast<std::size_t>(axis) >= perm.size()) return nullptr;
  Value* source = reversed(*node->input(0), perm[static_cast<std::size_t>(axis)], build);
  return source ? &build.op("Transpose", {source}, {{"perm", perm}}) : nullptr;
}

/// The axis of extent 1 that a Squeeze, or a Reshape, leaves out; nothing when the node does anything else.
std::optional<std::int64_t> dropped_axis(const Node& node) {
  const Shape &x = node.input(0)->shape(), &y = node.output()->shape();
  if (!x.has_rank()) return {};
  if (node.is("Squeeze")) {
    const auto axes = setting(node, "axes", 1);
    const auto inside = axes ? positive(*axes, static_cast<std::int64_t>(x.rank())) : std::nullopt;
    return inside && inside->size() == 1 ? std::optional(inside->front()) : std::nullopt;
  }
  if (!node.is("Reshape") || !y.has_rank() || y.rank() + 1 != x.rank()) return {};
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (!(x[axis].number() == 1)) continue;
    std::size_t open = 0;  // an extent that is not proven equal follows from the number of elements
    for (std::size_t i = 0, j = 0; i < x.rank(); ++i) open += i == axis || x[i] == y[j++] ? 0 : 1;
    if (open <= 1) return static_cast<std::int64_t>(axis);
  }
  return {};
}

/// On from Y to where everything that reads it is reversed along the steps again; null when something is not.
Node* reversed_back(Value& y) {
  std::int64_t steps = 0;
  Value* value = &y;
  for (Node* node = only_reader(*value); node; node = only_reader(*value)) {
    if (node->input(0) != value) return nullptr;
    if (reverses(*node, steps)) return node;
    if (node->is("Transpose")) {
      const Ints perm = node->attrs.ints("perm");
      steps = std::ranges::find(perm, steps) - perm.begin();
    } else if (const std::optional<std::int64_t> dropped = dropped_axis(*node); dropped && *dropped != steps) {
      steps -= *dropped < steps;
    } else {
      return nullptr;
    }
    value = node->output();
  }
  return nullptr;
}

}  // namespace

/// A forward layer over a reversed sequence is a reverse layer, whose Y comes out in the order of the sequence.
bool run_backwards(Node& node, Context& context) {
  const bool plain = node.attrs.integer("layout") == 0 && !node.input(kLengths) && rank_of(node.input(kX)) == 3;
  if (!plain || direction(node) != "forward") return false;
  Value* y = node.output();
  const bool y_read = y && (!y->uses().empty() || y->is_graph_output());
  Node* back = y_read ? reversed_back(*y) : nullptr;
  if (y_read && !back) return false;
  Build build(node.graph(), node, context);
  Value* x = reversed(*node.input(kX), 0, build);
  if (!x) return false;
  node.graph().set_input(node, kX, x);
  node.attrs.set("direction", "reverse");
  if (back) node.graph().replace(*back->output(), *back->input(0));
  context.hit("recurrent-over-reversed");
  return true;
}

}  // namespace modelflow::passes
