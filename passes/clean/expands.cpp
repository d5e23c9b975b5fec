// Expand in front of ops that broadcast by themselves, and of Transposes, which would move every copy. PyTorch writes
// expand_as (also inside F.normalize), which costs a copy and hides the broadcast.
#include <algorithm>
#include <array>
#include <string_view>

#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/graph/extents.h"
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

/// Transpose of what an Expand of the same rank repeats, read by nobody else -> Expand of what is transposed (BoTNet,
/// HaloNet: relative positions along the rows and along the columns of an image).
bool pass_transpose(Node& expand, Context& context) {
  Value &x = *expand.input(0), &target = *expand.input(1);
  Node* transpose = only_reader(*expand.output());
  if (!transpose || !transpose->is("Transpose") || &transpose->graph() != &expand.graph()) return false;
  const Ints perm = transpose->attrs.ints("perm");
  const bool same_rank = rank_of(&x) == perm.size() && target.type.is_tensor() && target.shape().has_rank() &&
                         target.shape().rank() == 1 && target.shape()[0] == Dim(perm.size());
  if (perm.empty() || !same_rank) return false;
  Graph& graph = expand.graph();
  Build build(graph, *transpose, context);
  Value& moved = build.op("Transpose", {&x}, {{"perm", perm}});
  Value& places = build.constant(tensor_of(perm), "perm");
  Value& made = build.op("Expand", {&moved, &build.op("Gather", {&target, &places})});
  made.type = transpose->output()->type;
  graph.replace(*transpose->output(), made);
  context.hit("expand-behind-transpose");
  return true;
}

int run(Graph& graph, Context& context) {
  const std::vector<Node*> nodes = nodes_of(graph, {"Expand"});
  int changes = 0, moved = 0;
  for (Node* expand : nodes)
    if (pass_transpose(*expand, context)) ++moved;
  if (moved) {  // others may have read those that went
    graph.prune();
    return moved;
  }
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
  return {.name = "drop-expands",
          .doc = "Expand read by ops that broadcast by themselves -> nothing; one in front of a Transpose -> behind it",
          .run = run};
}

}  // namespace modelflow::passes
