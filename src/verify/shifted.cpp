// Casts around an Add.
#include "src/verify/shifted.h"

#include "src/verify/widened.h"

namespace modelflow {

Value& shifted(Graph& graph, Value& x, std::int32_t shift, DType to, Node* before) {
  Value& wide = cast_to(graph, x, DType::i32, before);
  Value& sum = *graph.add("Add", {&wide, &graph.add_constant(Tensor::scalar(shift))}, {.before = before}).output();
  sum.type = wide.type;
  return cast_to(graph, sum, to, before);
}

}  // namespace modelflow
