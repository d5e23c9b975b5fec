// Whether nodes take tensors without elements.
#include "passes/graph/empty.h"

#include "passes/graph/facts.h"

namespace modelflow::passes {

bool fails_when_empty(const Node& node) {
  const std::optional<Ints> target = node.is("Reshape") ? const_ints(node.input(1)) : std::nullopt;
  return target && node.attrs.integer("allowzero") == 0 && refuses_empty(*target);
}

bool fails_without(const Node& node, const Dim& extent) {
  if (!fails_when_empty(node) || !node.input(0)->shape().has_rank()) return false;
  const Ints target = *const_ints(node.input(1));
  const Shape& from = node.input(0)->shape();
  for (std::size_t i = 0; i < target.size() && i < from.rank(); ++i)
    if (target[i] == 0 && from[i] == extent) return true;
  return false;
}

}  // namespace modelflow::passes
