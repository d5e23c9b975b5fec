// BatchNormalization that no weights could take, in front of a convolution -> a convolution of its own with one number
// for each channel: channels last like its neighbours, with the activation behind it.
#include "passes/graph/batch_norm.h"

#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"
#include "passes/graph/folded.h"
#include "passes/graph/precision.h"

namespace modelflow::passes {
namespace {

/// Read by a convolution, at once or behind an activation (DenseNet, ResNets that normalize first).
bool leads_to_convolution(const Value& value, bool at_once = false) {
  for (const Use& use : value.uses()) {
    if (use.node->is("modelflow.Conv") && use.index == 0) return true;
    if (at_once || !use.node->output()) continue;
    if ((activation_of(*use.node) || use.node->is("PRelu")) && leads_to_convolution(*use.node->output(), true))
      return true;
  }
  return false;
}

Verdict fits(const Node& bn, const Context& context) {
  if (Verdict v = inference_form(bn); !v) return v;
  const std::size_t rank = rank_of(bn.input(0)).value_or(0);
  if (rank < 3 || rank > 4) return no("only 1 or 2 spatial axes", bn.input(0)->name());
  for (std::size_t i = 0; i < 5; ++i)
    if (bn.input(i)->dtype() != DType::f32) return no("is not float32", bn.input(i)->name());
  if (!leads_to_convolution(*bn.output())) return no("no convolution follows", bn.output()->name());
  // 8 bits, and bfloat16 beside float32, would round what keeps its digits now, and cost as much time. On a GPU all of
  // it is in 16 bits anyway.
  const bool rounds = replaces_convolutions(context.options);
  return rounds ? no("a lower precision is asked for") : yes();
}

bool fuse(Node& bn, Context& context, Extents& extents) {
  const Verdict verdict = fits(bn, context);
  if (!verdict) {
    context.miss("batch-norm", &bn, verdict.reason);
    return false;
  }
  const Affine affine = affine_of(bn);
  const auto channels = static_cast<std::int64_t>(affine.scale.size());
  const std::size_t axes = *rank_of(bn.input(0)) - 2;
  Dims window(axes + 2, 1);
  window[0] = channels;
  const std::optional<Tensor> w = from_doubles(DType::f32, window, affine.scale),
                              b = from_doubles(DType::f32, {channels}, affine.shift);
  if (!w || !b || !ordinary(affine.scale)) {
    context.miss("batch-norm", &bn, "its scales or shifts would lose digits");
    return false;
  }
  Graph& graph = bn.graph();
  const Ints ones(axes, 1);
  Attrs attrs{{"kernel_shape", ones}, {"strides", ones}, {"dilations", ones}, {"pads", Ints(2 * axes, 0)}};
  attrs.set("group", channels).set("has_bias", 1);
  const std::string stem = bn.name.empty() ? "normalization" : bn.name;
  Node* fused =
      make_fused(graph, context, "batch-norm", "modelflow.Conv",
                 {bn.input(0), &graph.add_constant(*w, stem + "_scale"), &graph.add_constant(*b, stem + "_shift")},
                 std::move(attrs), bn);
  if (!fused) return false;
  fused->name = bn.name;
  extents.forget(*bn.output());
  graph.replace(*bn.output(), *fused->output());
  graph.erase(bn);
  context.hit("batch-norm");
  absorb_epilogue(fused, context, extents, "batch-norm");
  return true;
}

int run(Graph& graph, Context& context) {
  Extents extents;
  int changes = 0;
  for (Node* bn : nodes_of(graph, {"BatchNormalization"})) changes += fuse(*bn, context, extents);
  return changes;
}

}  // namespace

Pass fuse_batch_norm() {
  return {.name = "fuse-batch-norm",
          .doc = "BatchNormalization in front of convolutions, and the activation behind it -> modelflow.Conv",
          .run = run};
}

}  // namespace modelflow::passes
