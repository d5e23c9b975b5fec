// Sub-pixel convolutions (arXiv 1609.05158) as PyTorch has them: of the channels that become one, the pixels of a block
// lie side by side. Filters in another order give the pixel's channels side by side instead, which move together where
// channels are last.
#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

/// Rows of `tensor` [C * pixels, ...] as [pixels * C, ...].
Tensor pixels_first(const Tensor& tensor, std::int64_t pixels) {
  const std::int64_t rows = tensor.dims()[0], channels = rows / pixels;
  const std::size_t row = tensor.bytes() / static_cast<std::size_t>(rows);
  return Tensor::make(tensor.dtype(), tensor.dims(), [&](std::byte* to) {
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::int64_t c = 0; c < channels; ++c, to += row)
        std::copy_n(tensor.data() + static_cast<std::size_t>(c * pixels + pixel) * row, row, to);
    }
  });
}

/// A constant with a row of whole bytes for each of the filters.
bool has_rows(const Value* value, std::int64_t filters) {
  const Tensor* constant = value ? value->constant() : nullptr;
  return constant && constant->rank() > 0 && constant->dims()[0] == filters && bits(constant->dtype()) % 8 == 0;
}

bool reorder(Node& node, Context& context) {
  if (node.attrs.text("mode", "DCR") != "CRD" || !node.input(0)) return false;
  Node* conv = node.input(0)->producer();
  if (!conv || !conv->is("Conv") || !only_reader(*node.input(0)) || conv->attrs.integer("group", 1) != 1) return false;
  const std::int64_t size = block_size(node);
  const Value *w = conv->input(1), *bias = conv->input(2);
  if (size < 2 || !w || !w->constant() || w->constant()->rank() != 4) return false;
  const std::int64_t pixels = size * size, filters = w->constant()->dims()[0];
  if (filters == 0 || filters % pixels != 0 || w->constant()->elements() == 0) return false;
  if (!has_rows(w, filters) || (bias && !has_rows(bias, filters))) return false;
  Build build(node.graph(), *conv, context);
  node.graph().set_input(*conv, 1, &build.constant(pixels_first(*w->constant(), pixels), w->name()));
  if (bias) node.graph().set_input(*conv, 2, &build.constant(pixels_first(*bias->constant(), pixels), bias->name()));
  node.attrs.set("mode", Attr(std::string("DCR")));
  context.hit("filters-in-pixels");
  return true;
}

}  // namespace

Pass reorder_subpixels() {
  return {.name = "depth-to-space",
          .doc = "A convolution in front of DepthToSpace in CRD mode -> its filters in the order of DCR mode",
          .run = [](Graph& graph, Context& context) {
            int changes = 0;
            for (Node* node : nodes_of(graph, {"DepthToSpace"})) changes += reorder(*node, context);
            if (changes) graph.prune();
            return changes;
          }};
}

}  // namespace modelflow::passes
