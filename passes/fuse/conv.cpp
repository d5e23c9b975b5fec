// Conv in every spelling that exporters emit -> modelflow.Conv, then the nodes behind it one by one.
#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

std::int64_t entry(const Ints& list, std::size_t i, std::int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

/// Explicit pads for auto_pad; a no where they depend on a size that nobody knows.
Verdict resolve_pads(const Node& conv, const Ints& kernel, Extents& extents, Ints& pads) {
  const std::size_t rank = kernel.size();
  const std::string how = conv.attrs.text("auto_pad", "NOTSET");
  pads = conv.attrs.ints("pads", Ints(2 * rank, 0));
  if (pads.size() != 2 * rank) return no("pads has " + std::to_string(pads.size()) + " entries");
  if (how == "NOTSET" || how.empty()) return yes();
  pads.assign(2 * rank, 0);
  if (how == "VALID") return yes();
  const Shape x = extents.of(*conv.input(0));
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t stride = entry(conv.attrs.ints("strides"), i, 1);
    const std::int64_t reach = (kernel[i] - 1) * entry(conv.attrs.ints("dilations"), i, 1);
    std::int64_t total = reach;
    if (stride != 1) {
      if (!x.has_rank() || !x[i + 2].known())
        return no("auto_pad with strides needs known sizes", conv.input(0)->name());
      const std::int64_t in = x[i + 2].value(), out = (in + stride - 1) / stride;
      total = std::max<std::int64_t>((out - 1) * stride + reach + 1 - in, 0);
    }
    const std::int64_t less = total / 2, more = total - less;
    pads[i] = how == "SAME_LOWER" ? more : less;
    pads[i + rank] = total - pads[i];
  }
  return yes();
}

Attrs fused_attrs(const Node& conv, Ints kernel, Ints pads) {
  const std::size_t rank = kernel.size();
  Attrs attrs;
  attrs.set("kernel_shape", std::move(kernel)).set("pads", std::move(pads));
  attrs.set("strides", conv.attrs.ints("strides", Ints(rank, 1)));
  attrs.set("dilations", conv.attrs.ints("dilations", Ints(rank, 1)));
  attrs.set("group", conv.attrs.integer("group", 1));
  attrs.set("has_bias", conv.input(2) ? 1 : 0);
  return attrs;
}

Verdict check(const Node& conv) {
  const Value* w = conv.input(1);
  const Tensor* weights = w ? w->constant() : nullptr;
  if (!weights) return no("the weights are not constant", w ? w->name() : "");
  if (weights->dtype() != DType::f32) return no("the weights are " + std::string(name(weights->dtype())), w->name());
  if (weights->rank() < 3 || weights->rank() > 5) return no("only 1 to 3 spatial axes", w->name());
  if (conv.input(2) && !conv.input(2)->constant()) return no("the bias is not constant", conv.input(2)->name());
  const Ints kernel(weights->dims().begin() + 2, weights->dims().end());
  if (conv.attrs.ints("kernel_shape", kernel) != kernel)
    return no("kernel_shape is not that of the weights", w->name());
  for (const char* name : {"strides", "dilations"})
    if (conv.attrs.ints(name, kernel).size() != kernel.size())
      return no(std::string(name) + " has another number of entries than the window has axes");
  if (const auto rank = rank_of(conv.input(0)); rank && *rank != kernel.size() + 2)
    return no("is of another rank than the weights", conv.input(0)->name());
  return yes();
}

/// The fused form of a standard Conv, in its place; null when it stays.
Node* convert(Node& conv, Context& context, Extents& extents) {
  Graph& graph = conv.graph();
  Ints pads;
  Verdict verdict = check(conv);
  const Dims& w = verdict ? conv.input(1)->constant()->dims() : Dims();
  Ints kernel = verdict ? Ints(w.begin() + 2, w.end()) : Ints();
  if (verdict) verdict = resolve_pads(conv, kernel, extents, pads);
  if (!verdict) {
    context.miss("conv", &conv, verdict.reason);
    return nullptr;
  }
  std::vector<Value*> inputs = {conv.input(0), in_graph(graph, conv.input(1))};
  if (conv.input(2)) inputs.push_back(in_graph(graph, conv.input(2)));
  Node* fused = make_fused(graph, context, "conv", "modelflow.Conv", std::move(inputs),
                           fused_attrs(conv, std::move(kernel), std::move(pads)), conv);
  if (!fused) return nullptr;
  fused->name = conv.name;
  take_place(*fused, conv, context, "conv", extents);
  return fused;
}

int run(Graph& graph, Context& context) {
  Extents extents;
  const std::vector<Node*> convs = nodes_of(graph, {"Conv"});
  std::vector<Node*> fused;
  for (Node* conv : convs) {
    if (Node* node = convert(*conv, context, extents)) fused.push_back(node);
  }
  int changes = static_cast<int>(fused.size());
  // Last first: where both operands of a sum or product are convolutions, the one that runs later takes it.
  for (auto it = fused.rbegin(); it != fused.rend(); ++it) changes += absorb_epilogue(*it, context, extents, "conv");
  return changes;
}

}  // namespace

Pass fuse_conv() {
  return {.name = "fuse-conv",
          .doc = "Convolution with constant weights, then bias, activation and residual behind it -> modelflow.Conv",
          .run = run};
}

}  // namespace modelflow::passes
