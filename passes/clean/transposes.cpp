// Transposes of constants, and those in front of a product, which may read its operand as it lies.
#include <fmt/format.h>

#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"
#include "passes/graph/transposed.h"

namespace modelflow::passes {

namespace {

int transpose_constants(Graph& graph, Context& context) {
  int changes = 0;
  for (const auto& node : graph.nodes()) {
    Value* out = node->is("Transpose") ? node->output() : nullptr;
    Value* source = out ? node->input(0) : nullptr;
    const Tensor* tensor = source ? source->constant() : nullptr;
    if (!tensor || out->is_graph_output() || out->uses().empty() || tensor->rank() == 0 || bits(tensor->dtype()) < 8)
      continue;
    // Embeddings that are also the last layer's weights: a second copy is worth it only within the growth limit.
    if (source->uses().size() > 1 && static_cast<double>(tensor->bytes()) > context.options.max_fold_bytes) {
      context.miss(
          "transpose-of-constant", node.get(),
          fmt::format("others read the constant: a second copy is larger than the {:.0f} MiB that folding may add",
                      context.options.max_fold_bytes / (1 << 20)));
      continue;
    }
    Ints perm = node->attrs.ints("perm");
    if (perm.empty())
      for (std::size_t i = tensor->rank(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
    Ints sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    bool permutation = sorted.size() == tensor->rank();
    for (std::size_t i = 0; i < sorted.size(); ++i)
      permutation = permutation && sorted[i] == static_cast<std::int64_t>(i);
    if (!permutation) continue;
    graph.replace(*out, graph.add_constant(transposed(*tensor, perm), source->name()));
    ++changes;
  }
  if (changes) context.hit("transpose-of-constant", changes);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass transpose_weights() {
  return {.name = "transpose-weights", .doc = "Transposes constants once, here.", .run = transpose_constants};
}

}  // namespace modelflow::passes
