// Reads the Concat behind convolutions.
#include "passes/graph/joined.h"

#include <algorithm>
#include <set>

#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// Of a convolution by constant weights, which say how many channels there are, and read by this Concat once.
bool is_part(const Value* value, const Node& concat) {
  const Node* node = value ? value->producer() : nullptr;
  if (!node || !(node->is("Conv") || node->is("ConvTranspose")) || &node->graph() != &concat.graph()) return false;
  return node->input(1)->constant() && only_reader(*value) == &concat && rank_of(value) > 2 &&
         value->shape()[1].number().value_or(0) > 0;
}

}  // namespace

Node* joined_convolutions(const Value& value) {
  Node* concat = value.producer();
  if (!concat || !concat->is("Concat") || &concat->graph() != &value.graph() || !only_reader(value)) return nullptr;
  const std::size_t rank = rank_of(&value).value_or(0);
  const std::optional<Ints> axis = positive({concat->attrs.integer("axis", 0)}, static_cast<std::int64_t>(rank));
  if (!axis || (*axis)[0] != 1) return nullptr;
  const std::set<const Value*> parts(concat->inputs().begin(), concat->inputs().end());
  const bool apart = parts.size() == concat->inputs().size();  // one part twice has two uses
  return apart && std::ranges::all_of(parts, [&](const Value* part) { return is_part(part, *concat); }) ? concat
                                                                                                        : nullptr;
}

}  // namespace modelflow::passes
