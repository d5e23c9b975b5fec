// A Transpose that moves axes of extent 1 only leaves the elements where they are: a Reshape, which copies nothing, or
// a Squeeze and an Unsqueeze where it would refuse empty tensors. Last of all, because other passes look for
// Transposes.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/graph/transposed.h"
#include "passes/layout/layout.h"

namespace modelflow::passes {
namespace {

/// Dims for a Reshape to the transposed shape; nothing when the order of elements changes or too little is known.
std::optional<Ints> target_of(const Node& node) {
  const Ints perm = node.attrs.ints("perm");
  const Shape& x = node.input(0)->shape();
  if (!x.has_rank() || perm.size() != x.rank()) return {};
  if (!std::ranges::is_sorted(longer_axes(perm, x))) return {};
  Ints target;
  std::size_t open = 0;
  for (std::size_t i = 0; i < perm.size(); ++i) {
    const Dim& dim = x[static_cast<std::size_t>(perm[i])];
    const bool stays = perm[i] == static_cast<std::int64_t>(i);
    if (!dim.known() && !stays) ++open;
    target.push_back(dim.known() ? dim.value() : stays ? 0 : -1);
    if (target.back() == 0 && !stays) return {};  // no elements at all
  }
  return open <= 1 ? std::optional(target) : std::nullopt;
}

/// Without the axes of extent 1, and with them where they belong.
Value& without_units(Node& node, Build& build) {
  const Ints perm = node.attrs.ints("perm");
  const Shape& x = node.input(0)->shape();
  Ints dropped, added;
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (x[i].number() == 1) dropped.push_back(static_cast<std::int64_t>(i));
    if (x[static_cast<std::size_t>(perm[i])].number() == 1) added.push_back(static_cast<std::int64_t>(i));
  }
  return with_axes(build, "Unsqueeze", with_axes(build, "Squeeze", *node.input(0), dropped), added);
}

int run(Graph& graph, Context& context) {
  const std::vector<Node*> transposes = nodes_of(graph, {"Transpose"});
  int changes = 0;
  for (Node* node : transposes) {
    const std::optional<Ints> target = target_of(*node);
    if (!target) continue;
    Build build(graph, *node, context);
    Value& x = *node->input(0);
    Value& y = refuses_empty(*target) ? without_units(*node, build)
                                      : build.op("Reshape", {&x, &build.constant(tensor_of(*target), "shape")});
    graph.replace(*node->output(), y);
    graph.erase(*node);
    context.hit("transpose-of-unit-axes");
    ++changes;
  }
  return changes;
}

}  // namespace

Pass unit_transposes() {
  return {.name = "unit-transposes",
          .doc = "A Transpose that moves nothing but axes of extent 1 -> Reshape, which copies nothing",
          .run = run};
}

}  // namespace modelflow::passes
