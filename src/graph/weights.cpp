// Weights that old files list as inputs.
#include "modelflow/weights.h"

namespace modelflow {

int unlist_weights(Graph& graph, std::int64_t ir_version, const std::set<const Value*>& kept) {
  if (ir_version >= 4) return 0;
  int changes = 0;
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    const Value* input = graph.inputs()[i];
    if (!input->is_initializer() || kept.contains(input)) continue;
    graph.remove_input(i);
    ++changes;
  }
  return changes;
}

}  // namespace modelflow
