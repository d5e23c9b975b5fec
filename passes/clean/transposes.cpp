#include <algorithm>
#include <cstring>

#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

using Sizes = std::vector<std::size_t>;

/// Copies elements of `width` bytes so that axis i of the result is axis perm[i] of the source.
Tensor transposed(const Tensor& source, const Ints& perm) {
  const std::size_t rank = perm.size(), width = static_cast<std::size_t>(bits(source.dtype())) / 8;
  Sizes strides(rank, width);
  for (std::size_t i = rank - 1; i > 0; --i) strides[i - 1] = strides[i] * static_cast<std::size_t>(source.dims()[i]);
  Dims dims(rank);
  Sizes step(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] = source.dims()[static_cast<std::size_t>(perm[i])];
    step[i] = strides[static_cast<std::size_t>(perm[i])];
  }
  const std::size_t row = static_cast<std::size_t>(dims.back());
  return Tensor::make(source.dtype(), dims, [&](std::byte* out) {
    Sizes at(rank, 0);
    std::size_t offset = 0;
    for (std::size_t left = static_cast<std::size_t>(source.elements()); left > 0; left -= row) {
      for (std::size_t i = 0; i < row; ++i, out += width)
        std::memcpy(out, source.data() + offset + i * step.back(), width);
      for (std::size_t axis = rank - 1; axis-- > 0;) {  // odometer over the outer axes
        offset += step[axis];
        if (++at[axis] < static_cast<std::size_t>(dims[axis])) break;
        offset -= step[axis] * at[axis];
        at[axis] = 0;
      }
    }
  });
}

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
      context.miss("transpose-of-constant", node.get(),
                   "others read the constant: a second copy would be larger than max_fold_bytes");
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
