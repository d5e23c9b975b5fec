// Forgets symbols where one name would stand for several extents.
#include "modelflow/symbols.h"

namespace modelflow {

bool is_symbol(const Dim& dim) {
  const std::vector<std::string> symbols = dim.symbols();
  return symbols.size() == 1 && dim == Dim::symbol(symbols.front());
}

void forget_symbols(Type& type) {
  if (!type.is_tensor() || !type.shape.has_rank()) return;
  std::vector<Dim> dims = type.shape.dims();
  for (Dim& dim : dims)
    if (!dim.known()) dim = {};
  type.shape = std::move(dims);
}

void forget_symbols(const Graph& graph) {
  for (Value* input : graph.inputs()) forget_symbols(input->type);
  for (const auto& node : graph.nodes()) {
    for (Value* output : node->outputs())
      if (output) forget_symbols(output->type);
    for (const Graph* inner : node->subgraphs()) forget_symbols(*inner);
  }
}

}  // namespace modelflow
