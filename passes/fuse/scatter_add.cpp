// ScatterElements that adds, by an index that is the same along whole rows (PyTorch's scatter_add, the sums over
// neighbours of torch_geometric) -> modelflow.ScatterAdd: ONNX Runtime takes some 30 ns for each element of it.
#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

bool adds(const Node& node) {
  const Value& data = *node.input(0);
  const std::int64_t axis = node.attrs.integer("axis", 0);
  const std::optional<std::size_t> rank = rank_of(&data);
  return node.attrs.text("reduction", "none") == "add" && data.dtype() == DType::f32 && rank.value_or(0) > 0 &&
         (axis == 0 || axis == -static_cast<std::int64_t>(*rank));
}

/// What of the indices has one element for a row; null where they differ within rows.
Value* index_of_rows(const Node& node, std::size_t rank, Extents& extents) {
  Value* indices = node.input(1);
  if (rank == 1) return indices;
  const Node* expand = indices->producer();
  if (!expand || !expand->is("Expand") || &expand->graph() != &node.graph()) return nullptr;
  const Shape shape = extents.of(*expand->input(0));
  if (!shape.has_rank() || shape.rank() != rank) return nullptr;
  for (std::size_t i = 1; i < rank; ++i)
    if (shape[i].number() != 1) return nullptr;
  return expand->input(0);
}

bool whole_rows(const Node& node, Extents& extents) {
  const Shape data = extents.of(*node.input(0)), updates = extents.of(*node.input(2));
  if (!updates.has_rank() || updates.rank() != data.rank()) return false;
  for (std::size_t i = 1; i < data.rank(); ++i)
    if (!(data[i] == updates[i])) return false;
  return true;
}

bool fuse(Node& node, Context& context, Extents& extents) {
  constexpr const char* kRule = "scatter-add";
  Value* rows = index_of_rows(node, *rank_of(node.input(0)), extents);
  if (!rows || !whole_rows(node, extents)) {
    context.miss(kRule, &node, rows ? "updates may be narrower than the rows" : "an index is not for a whole row");
    return false;
  }
  Graph& graph = node.graph();
  Node* fused =
      make_fused(graph, context, kRule, "modelflow.ScatterAdd", {node.input(0), rows, node.input(2)}, {}, node);
  if (!fused) return false;
  take_place(*fused, node, context, kRule, extents);
  return true;
}

int run(Graph& graph, Context& context) {
  if (context.model.opset() < 16) return 0;  // nothing adds
  Extents extents;
  int changes = 0;
  for (Node* node : nodes_of(graph, {"ScatterElements"}))
    if (adds(*node)) changes += fuse(*node, context, extents);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass fuse_scatter_add() {
  return {
      .name = "fuse-scatter-add", .doc = "ScatterElements that adds to whole rows -> modelflow.ScatterAdd", .run = run};
}

}  // namespace modelflow::passes
