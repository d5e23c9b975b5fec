// Whether nodes take tensors without elements.
#include "passes/graph/empty.h"

#include "passes/graph/facts.h"

namespace modelflow::passes {

bool fails_when_empty(const Node& node) {
  const std::optional<Ints> target = node.is("Reshape") ? const_ints(node.input(1)) : std::nullopt;
  return target && node.attrs.integer("allowzero") == 0 && refuses_empty(*target);
}

}  // namespace modelflow::passes
