// Scale, shift and Relu in front of a convolution of single pixels become part of it, once both run channels last:
// networks that normalize and activate first (DenseNet, pre-activation ResNets) move all of an image for them.
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/graph/folded.h"
#include "passes/layout/layout.h"
#include "src/core/half.h"

namespace modelflow::passes {
namespace {

/// What fuse-batch-norm makes: one number for each channel, a shift, and Relu alone.
bool is_scale_shift_relu(const Node& node) {
  const Attrs& has = node.attrs;
  if (!computes(node, Family::convolution, Form::f32) || has.text("activation") != "Relu") return false;
  if (has.number("post_scale", 1) != 1 || has.number("post_shift", 0) != 0) return false;
  if (has.text("residual") != "none" || has.text("pre_activation") != "None" || !input_as(node, "bias")) return false;
  if (has.text("x_layout") != "NHWC" || has.text("y_layout") != "NHWC") return false;
  const Tensor* w = node.input(1)->constant();
  return all_are(has.ints("strides"), 1) && all_are(has.ints("pads"), 0) && w && w->elements() == w->dims()[0] &&
         has.integer("group") == w->dims()[0] && ordinary(in_float32(*w)) && input_as(node, "bias")->constant();
}

/// The convolution with `pre` in it; false where no kernel takes it.
bool absorb(Node& conv, Node& pre, Context& context) {
  Graph& graph = conv.graph();
  const Tensor& scale = *pre.input(1)->constant();
  std::vector<Value*> inputs = conv.inputs();
  const auto end = inputs.begin() + static_cast<std::ptrdiff_t>(place_of(conv, "residual").value_or(inputs.size()));
  Value& scales = graph.add_constant(scale.reshaped({scale.elements()}), pre.input(1)->name());
  inputs.insert(end, {&scales, input_as(pre, "bias")});
  inputs[0] = pre.input(0);
  Attrs attrs = conv.attrs;
  attrs.set("pre_activation", "Relu");
  Node* made =
      make_fused(graph, context, "pre-activation", "modelflow.Conv", std::move(inputs), std::move(attrs), conv);
  if (!made) {
    graph.erase(scales);
    return false;
  }
  made->name = conv.name;
  made->doc = conv.doc;
  graph.replace(*conv.output(), *made->output());
  graph.erase(conv);
  graph.erase(pre);
  context.hit("pre-activation");
  return true;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (Node* conv : nodes_of(graph, Family::convolution, Form::f32)) {
    Node* pre = conv->input(0)->producer();
    if (!pre || &pre->graph() != &graph || only_reader(*conv->input(0)) != conv) continue;
    if (conv->attrs.text("pre_activation") == "None" && is_scale_shift_relu(*pre))
      changes += absorb(*conv, *pre, context);
  }
  return changes;
}

}  // namespace

Pass absorb_pre_activations() {
  return {.name = "absorb-pre-activations",
          .doc = "Scale, shift and Relu in front of a channels-last convolution of single pixels become part of it",
          .run = run};
}

}  // namespace modelflow::passes
