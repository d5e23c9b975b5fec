// Expand in front of ops that broadcast by themselves. PyTorch writes expand_as (also inside F.normalize), which costs
// a copy and hides the broadcast.
#include <algorithm>
#include <array>
#include <string_view>

#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

/// All operands broadcast in every opset that has Expand.
constexpr std::array<std::string_view, 14> kBroadcasting = {
    "Add",         "Sub",  "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual",
    "LessOrEqual", "Where"};

bool broadcasts(const Node& node) {
  return node.domain().empty() && std::ranges::find(kBroadcasting, node.op()) != kBroadcasting.end();
}

/// The result of `reader` is as large without the Expand: along each axis another operand, or what was expanded, has
/// that extent. They agree with the rest, or the node would not have run before either.
bool wide_without(const Node& reader, const Node& expand) {
  if (!broadcasts(reader)) return false;  // others may leave out their first output
  const Shape& y = reader.output()->shape();
  if (!y.has_rank()) return false;
  std::vector<const Shape*> shapes = {&expand.input(0)->shape()};
  for (const Value* input : reader.inputs())
    if (input != expand.output()) shapes.push_back(&input->shape());
  bool full_rank = false;
  for (const Shape* shape : shapes) {
    if (!shape->has_rank()) return false;
    full_rank = full_rank || shape->rank() == y.rank();
  }
  const auto has = [&](const Shape& shape, std::size_t from_back, const Dim& dim) {
    return shape.rank() >= from_back && shape[shape.rank() - from_back] == dim;
  };
  for (std::size_t i = 1; i <= y.rank(); ++i) {
    const Dim& dim = y[y.rank() - i];
    if (dim.number() != 1 && std::ranges::none_of(shapes, [&](const Shape* shape) { return has(*shape, i, dim); }))
      return false;
  }
  return full_rank;
}

int run(Graph& graph, Context& context) {
  const std::vector<Node*> nodes = nodes_of(graph, {"Expand"});
  int changes = 0;
  for (Node* expand : nodes) {
    const std::vector<Use> uses = expand->output()->uses();
    for (const Use& use : uses) {
      if (&use.node->graph() != &graph || !wide_without(*use.node, *expand)) continue;
      graph.set_input(*use.node, use.index, expand->input(0));
      ++changes;
    }
  }
  if (changes) {
    graph.prune();
    context.hit("expand-into-broadcast", changes);
  }
  return changes;
}

}  // namespace

Pass drop_expands() {
  return {.name = "drop-expands", .doc = "Expand read by ops that broadcast by themselves -> nothing", .run = run};
}

}  // namespace modelflow::passes
