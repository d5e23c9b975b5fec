// Moves and shifts values of an optimized model back to what the original calls by their names.
#include "src/verify/twins.h"

#include "passes/graph/channels_last.h"
#include "src/verify/shifted.h"

namespace modelflow {
namespace {

Value& channels_second(Graph& graph, Value& value, const Shape& shape) {
  const Ints perm = passes::to_first(value.shape().rank());
  Value& made = *graph.add("Transpose", {&value}, {.attrs = {{"perm", perm}}}).output();
  made.type = Type::tensor(value.dtype(), shape);
  return made;
}

void add_twin(Graph& graph, const Value& value, const Graph& original) {
  Value *twin = graph.find(value.name()), *moved = graph.find(passes::last_name(value.name()));
  const bool is_moved = !twin && moved && !original.find(moved->name());
  if (is_moved) twin = moved;
  if (!twin || twin->is_graph_output() || !twin->producer() || graph.pinned.contains(twin->name())) return;
  const bool was_signed = value.dtype() == DType::i8 && twin->dtype() == DType::u8;
  if (!(is_moved || was_signed) || !(was_signed || twin->dtype() == value.dtype())) return;
  if (is_moved && (!twin->shape().has_rank() || twin->shape().rank() < 3)) return;
  Value* made = is_moved ? &channels_second(graph, *twin, value.shape()) : twin;
  if (was_signed) made = &shifted(graph, *made, -kToUnsigned, DType::i8);
  if (twin->name() == value.name()) graph.rename(*twin, graph.unique_name(value.name()));
  graph.rename(*made, value.name());
}

}  // namespace

Model with_twins(const Model& optimized, const Model& original) {
  Model model = optimized;
  for (const auto& node : original.graph().nodes())
    for (const Value* value : node->outputs())
      if (value) add_twin(model.graph(), *value, original.graph());
  return model;
}

}  // namespace modelflow
