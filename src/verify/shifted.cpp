// Casts around an Add.
#include "src/verify/shifted.h"

namespace modelflow {
namespace {

Value& cast(Graph& graph, Value& value, DType type, Node* before) {
  Node& node = graph.add("Cast", {&value}, {.before = before, .attrs = {{"to", static_cast<std::int64_t>(type)}}});
  node.output()->type = Type::tensor(type, value.shape());
  return *node.output();
}

}  // namespace

Value& shifted(Graph& graph, Value& x, std::int32_t shift, DType to, Node* before) {
  Value& wide = cast(graph, x, DType::i32, before);
  Value& sum = *graph.add("Add", {&wide, &graph.add_constant(Tensor::scalar(shift))}, {.before = before}).output();
  sum.type = wide.type;
  return cast(graph, sum, to, before);
}

}  // namespace modelflow
