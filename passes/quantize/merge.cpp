// DequantizeLinear, op, QuantizeLinear -> the op in 8 bits. Transposed convolutions have a file of their own.
#include <map>
#include <optional>

#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/imported_weights.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/quantized_values.h"
#include "passes/quantize/sides.h"
#include "passes/quantize/transposed.h"

namespace modelflow::passes {
namespace {

/// The result takes the place of what QuantizeLinear gave.
void take_over(Node& old, Node& made, const Side& y) {
  Graph& graph = old.graph();
  made.name = old.name;
  made.doc = old.doc;
  Node& quantize = *y.value->producer();
  graph.replace(*y.value, *made.output());
  graph.erase(quantize);
  graph.erase(old);
}

bool merge_conv(Node& conv, Context& context) {
  if (stays_float(conv, context)) return false;
  const auto x = read_side(conv.input(0)), y = write_side(conv.output());
  const Value *added = input_as(conv, "residual"), *biased = input_as(conv, "bias");
  const auto residual = read_side(added);
  if (!x || !y || (added && !residual)) return false;
  Graph& graph = conv.graph();
  const Tensor* bias = biased ? biased->constant() : nullptr;
  if (biased && !(bias && finite(*bias))) return false;
  auto inputs = conv_inputs(graph, *x, *weights_in(conv), 0, bias, y->q.scale, context);
  if (!inputs) return false;
  Attrs attrs = quantized_attrs(conv);
  set(attrs, "x", x->q);
  set(attrs, "y", y->q);
  set(attrs, "residual", residual ? residual->q : Quantization{1, 0});
  if (residual) inputs->push_back(residual->value);
  Node* made = make_fused(graph, context, "fuse-quantized", "modelflow.QConv", *std::move(inputs), attrs, conv);
  if (!made) return false;
  take_over(conv, *made, *y);
  return true;
}

/// What DynamicQuantizeLinear reads in front of this DequantizeLinear.
Value* dynamic_side(const Value* value) {
  const Node* node = value->producer();
  const Node* steps = node && node->is("DequantizeLinear") ? node->input(0)->producer() : nullptr;
  if (!steps || !steps->is("DynamicQuantizeLinear")) return nullptr;
  for (std::size_t i = 0; i < 3; ++i)
    if (node->input(i) != steps->output(i)) return nullptr;
  return steps->input(0);
}

/// A value that a product reads as float32 and rounds itself, as the pair in front of it did.
struct Rounded {
  Value* source;
  Quantization q;  ///< scale 0: known at run time
};

std::optional<Rounded> rounded(Value* value) {
  if (Value* source = dynamic_side(value)) return Rounded{source, {0, 0}};
  const auto a = read_side(value);
  if (!a) return {};
  // Rounding once more to the same grid changes nothing, so the pair may stay where others read it.
  const Node* quantize = a->value->producer();
  const auto first = quantize && quantize->is("QuantizeLinear") ? side(a->value, *quantize) : std::optional<Side>();
  return Rounded{first && first->q == a->q ? quantize->input(0) : value, a->q};
}

bool merge_product(Node& product, Context& context) {
  const auto a = rounded(product.input(0));
  const Attrs& old = product.attrs;
  const Value& b = *weights_in(product);
  if (!a || !b.constant() || old.integer("trans_a") || old.integer("row_bias") || old.number("scale") != 1)
    return false;
  const auto w = imported_weights(b, old.integer("trans_b") ? 0 : 1);
  if (!w) return false;
  Graph& graph = product.graph();
  Attrs attrs = old;
  for (const char* name : {"trans_a", "row_bias", "scale"}) attrs.erase(name);
  set(attrs, "a", a->q);
  if (a->q.scale == 0) attrs.set("a_per_tensor", 1);
  const std::string stem = b.name();
  std::vector<Value*> inputs = {a->source, &graph.add_constant(w->values, stem + "_quantized"),
                                &graph.add_constant(w->scales, stem + "_scale")};
  if (w->zero_points) {
    attrs.set("has_zero_point", 1);
    inputs.push_back(&graph.add_constant(*w->zero_points, stem + "_zero_point"));
  }
  inputs.insert(inputs.end(), product.inputs().begin() + 2, product.inputs().end());
  Node* made = make_fused(graph, context, "fuse-quantized", "modelflow.QMatMul", std::move(inputs), attrs, product);
  if (!made) return false;
  made->name = product.name;
  made->doc = product.doc;
  graph.replace(*product.output(), *made->output());
  graph.erase(product);
  return true;
}

bool merge_squeeze_excite(Node& block, Context& context) {
  if (stays_float(block, context)) return false;
  const auto x = read_side(block.input(0)), y = write_side(block.output());
  if (!x || !y) return false;
  Graph& graph = block.graph();
  std::vector<Value*> inputs = {x->value};
  for (const std::size_t i : {1, 3}) {
    const auto w = weights_of(*block.input(i), context, 0);
    if (!w) return false;
    const std::string stem = block.input(i)->name();
    inputs.push_back(&graph.add_constant(w->values, stem + "_quantized"));
    inputs.push_back(&graph.add_constant(w->scales, stem + "_scale"));
    inputs.push_back(block.input(i + 1));
  }
  Attrs attrs = block.attrs;
  set(attrs, "x", x->q);
  set(attrs, "y", y->q);
  Node* made = make_fused(graph, context, "fuse-quantized", "modelflow.QSqueezeExcite", std::move(inputs),
                          std::move(attrs), block);
  if (!made) return false;
  take_over(block, *made, *y);
  return true;
}

bool merge_sum(Node& node, bool relu, Context& context) {
  if (stays_float(node, context)) return false;
  const auto a = read_side(node.input(0)), b = read_side(node.input(1)), y = write_side(node.output());
  if (!a || !b || !y) return false;
  Attrs attrs{{"activation", std::string(relu ? "Relu" : "None")}};
  set(attrs, "a", a->q);
  set(attrs, "b", b->q);
  set(attrs, "y", y->q);
  Node* made = make_fused(node.graph(), context, "fuse-quantized", "modelflow.QAdd", {a->value, b->value}, attrs, node);
  if (!made) return false;
  take_over(node, *made, *y);
  return true;
}

/// Ops that only move elements do so in 8 bits where all scales are the same constants' values.
bool merge_carrier(Node& node, Context& context) {
  if (!carries(node, context.model.opset())) return false;
  const auto y = write_side(node.output());
  if (!y) return false;
  std::vector<Value*> inputs = node.inputs();
  for (std::size_t i = 0; i < carried(node).size(); ++i) {
    const auto x = read_side(inputs[i]);
    if (!x || x->q.scale != y->q.scale || x->q.zero_point != y->q.zero_point) return false;
    inputs[i] = x->value;
  }
  Graph& graph = node.graph();
  Node& made = graph.add(node.op(), std::move(inputs), {.before = &node, .attrs = node.attrs, .name = node.name});
  made.output()->type = Type::tensor(DType::u8, node.output()->shape());
  take_over(node, made, *y);
  return true;
}

int run(Graph& graph, Context& context) {
  if (context.model.opset() < 13) return 0;  // see raise-opset, which says why
  int changes = merge_transposed(graph, context);
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    if (!node->is("QuantizeLinear")) nodes.push_back(node.get());  // those go with the op in front of them
  Extents extents;
  std::map<const Node*, bool> sums;  // found before anything moves: extents remember values by address
  for (const Node* node : nodes)
    if (const std::optional<bool> relu = sum_of(*node, extents)) sums.emplace(node, *relu);
  for (Node* node : nodes) {
    if (computes(*node, Family::convolution, Form::f32))
      changes += merge_conv(*node, context);
    else if (computes(*node, Family::product, Form::f32))
      changes += merge_product(*node, context);
    else if (computes(*node, Family::squeeze_excite, Form::f32))
      changes += merge_squeeze_excite(*node, context);
    else
      changes += sums.contains(node) ? merge_sum(*node, sums.at(node), context) : merge_carrier(*node, context);
  }
  graph.prune();
  if (changes) context.hit("fuse-quantized", changes);
  return changes;
}

}  // namespace

Pass fuse_quantized() {
  return {.name = "fuse-quantized",
          .doc = "DequantizeLinear, op and QuantizeLinear -> the op in 8 bits (modelflow.QConv and others)",
          .run = run};
}

}  // namespace modelflow::passes
