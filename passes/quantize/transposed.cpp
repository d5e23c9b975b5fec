// Transposed convolutions in 8 bits, with the activation behind them.
#include "passes/quantize/transposed.h"

#include "modelflow/modelflow.h"
#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/quantize/sides.h"

namespace modelflow::passes {
namespace {

constexpr const char* kRule = "fuse-quantized";

const Tensor* bias_of(const Node& conv) { return conv.input(2) ? conv.input(2)->constant() : nullptr; }

/// The result takes the place of what the last of the nodes gave.
void take_over(const TransposedConv& old, Node& made, const std::optional<Side>& y) {
  Graph& graph = old.conv->graph();
  made.name = old.last->name;
  made.doc = old.last->doc;
  Node* quantize = y ? y->value->producer() : nullptr;
  graph.replace(y ? *y->value : *old.last->output(), *made.output());
  if (quantize) graph.erase(*quantize);
  if (old.last != old.conv) graph.erase(*old.last);
  graph.erase(*old.conv);
}

bool merge(const TransposedConv& found, Context& context) {
  Node& conv = *found.conv;
  if (stays_float(*found.last, context)) return false;
  const auto x = read_side(conv.input(0)), y = write_side(found.last->output());
  // What arrives quantized says in which steps results are, or is no op in 8 bits.
  if (!x || (!y && !context.plan)) return false;
  const Tensor* bias = bias_of(conv);
  if (bias && !finite(*bias)) return false;
  const auto inputs = conv_inputs(conv.graph(), *x, *conv.input(1), 1, bias, y ? y->q.scale : 0, context);
  if (!inputs) return false;
  Attrs attrs = found.attrs;
  set(attrs, "x", x->q);
  if (y) set(attrs, "y", y->q);
  const char* op = y ? "modelflow.QConvTranspose" : "modelflow.QConvTransposeFloat";
  Node* made = make_fused(conv.graph(), context, kRule, op, *inputs, std::move(attrs), conv);
  if (made) take_over(found, *made, y);
  return made != nullptr;
}

}  // namespace

std::optional<TransposedConv> transposed_conv(Node& node) {
  if (!windows_apart(node) || node.output()->dtype() != DType::f32) return {};
  const Tensor* w = node.input(1)->constant();
  TransposedConv found{&node, &node, {{"strides", Ints(w->dims().begin() + 2, w->dims().end())}}};
  Node* reader = only_reader(*node.output());
  const std::optional<Activation> activation = reader ? activation_of(*reader) : std::nullopt;
  if (!activation || activation->scale != 1) return found;
  found.last = reader;
  found.attrs.set("activation", activation->kind)
      .set("alpha", Attr(activation->alpha))
      .set("beta", Attr(activation->beta));
  return found;
}

Verdict quantizable(const TransposedConv& found, const Context& context) {
  const Node& conv = *found.conv;
  if (context.model.opset() < 13) return no("scales per channel need opset 13");
  if (!context.plan->allows(found.last->name, Precision::i8))
    return no("is to stay in higher precision", found.last->name);
  const Tensor &w = *conv.input(1)->constant(), *bias = bias_of(conv);
  if (!finite(w) || (bias && !finite(*bias))) return no("weights or bias hold what is no number", conv.name);
  Call call{"QConvTranspose", found.attrs, {}, {}};
  set(call.attrs, "x", {});
  set(call.attrs, "y", {});
  const Shape channels({Dim(w.dims()[1])});
  call.inputs = {{conv.input(0)->name(), DType::u8, conv.input(0)->shape()},
                 {conv.input(1)->name(), DType::i8, Shape::of(w.dims())},
                 {"w_scale", DType::f32, channels},
                 {"bias", DType::i32, channels}};
  const Choice choice = choose_kernel(call, context.target);
  return choice.kernel ? yes() : no(choice.reason);
}

int merge_transposed(Graph& graph, Context& context) {
  const std::vector<Node*> nodes = nodes_of(graph, {"ConvTranspose"});
  int changes = 0;
  for (Node* node : nodes)
    if (const auto found = transposed_conv(*node)) changes += merge(*found, context);
  return changes;
}

}  // namespace modelflow::passes
