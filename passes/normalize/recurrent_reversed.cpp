// A forward LSTM, GRU or RNN over a reversed sequence -> a reverse one over the sequence (flipped sequences in PyTorch,
// the backward layer of Keras' Bidirectional).
#include <algorithm>
#include <limits>

#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/graph/strided_view.h"
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

/// Where the steps, the first axis of Y, stand in a view of it; nothing where they are mixed with others.
std::optional<std::int64_t> steps_in(const StridedView& view, const Shape& y) {
  for (std::size_t i = 0; i < view.axes().size(); ++i)
    if (view.source_axis(i, y) == 0) return static_cast<std::int64_t>(i);
  return {};
}

/// On from Y to where everything that reads it is reversed along the steps again; null when something is not.
Node* reversed_back(Value& y) {
  if (!y.type.is_tensor() || !y.shape().has_rank()) return nullptr;
  StridedView view(y.shape());
  std::int64_t steps = 0;
  Value* value = &y;
  for (Node* node = only_reader(*value); node; node = only_reader(*value)) {
    if (node->input(0) != value || !node->output()) return nullptr;
    if (reverses(*node, steps)) return node;
    const auto at = view.follow(*node->output()) ? steps_in(view, y.shape()) : std::nullopt;
    if (!at) return nullptr;
    steps = *at;
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
