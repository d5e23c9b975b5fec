// Products and convolutions by constants -> MatMulBf16 and ConvBf16: weights in bfloat16, sums in float32. Whatever is
// no long sum of products stays in float32, because bfloat16 has 8 significant bits: normalizations, softmax and the
// probabilities behind it, reductions, quotients by something small, positions and indices.
#include "src/core/bf16.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include "modelflow/modelflow.h"
#include "passes/graph/channels_last.h"
#include "passes/graph/facts.h"
#include "passes/quantize/faster.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

/// Shorter sums do not fill a tile of AMX, and what computes with so few numbers (boxes out of distributions,
/// positions) is exact for a reason.
constexpr std::int64_t kLeastDepth = 32;

bool is_conv(const Node& node) { return computes(node, Family::convolution); }

/// Both, or weights alone: where memory decides, and activations stay as they are.
bool rounds_activations(const Context& context) { return context.options.precision != Precision::bf16_weights; }

/// How many products each result sums.
std::int64_t depth_of(const Node& node, const Dims& weights) {
  if (!is_conv(node)) return weights[node.attrs.integer("trans_b") != 0];
  return element_count(std::span(weights).subspan(1));
}

Verdict check(const Node& node, const Context& context) {
  if (context.model.opset() < 13) return no("the opset is below 13");
  if (!context.plan->allows(node.name, Precision::bf16)) return no("is to stay in higher precision");
  const Value& w = *weights_in(node);
  const Tensor* weights = w.constant();
  if (!weights || weights->dtype() != DType::f32) return no("is no constant of float32", w.name());
  if (is_conv(node) ? weights->elements() == 0 : weights->rank() != 2)
    return no("is empty, or not of rank 2", w.name());
  if (node.attrs.integer("trans_a")) return no("a is transposed");
  if (node.attrs.integer("row_bias")) return no("the weights stand on the left");
  if (!w.metadata.empty()) return no("arrived quantized", w.name());
  const std::int64_t depth = depth_of(node, weights->dims());
  return depth < kLeastDepth ? no("a sum over " + std::to_string(depth) + " is too short", w.name()) : yes();
}

std::string bf16_kind(const Node& node) { return std::string(in_form(*fused_op(node), Form::bf16)->kind); }

Attrs attrs_of(const Node& node, const Context& context) {
  Attrs attrs = node.attrs;
  for (const char* name : {"scale", "trans_a", "row_bias", "pre_activation"}) attrs.erase(name);
  if (is_conv(node)) return attrs;
  attrs.set("round_a", rounds_activations(context) ? 1 : 0);
  return attrs;
}

/// In the order of channels that the layout stage gives convolutions: the kernels of float32 depend on it.
Call channels_last(Call call) {
  if (!call.attrs.has("x_layout")) return call;
  call.attrs.set("x_layout", "NHWC").set("y_layout", "NHWC");
  for (Operand* operand : {&call.inputs[0], &call.outputs[0]}) operand->shape = last_shape(operand->shape);
  if (call.attrs.text("residual") != "none") call.inputs.back().shape = last_shape(call.inputs.back().shape);
  return call;
}

/// Yes when some kernel of the target takes the op in bfloat16 and is faster than the one that it has.
Verdict pays(const Node& node, const Context& context) {
  Call plain = call_of(node), rounded = plain;
  rounded.op = bf16_kind(node);
  rounded.attrs = attrs_of(node, context);
  rounded.inputs[*weights_place(node)].dtype =
      DType::bf16;  // kernels look at the dims of the constant only, before they are made
  plain = channels_last(std::move(plain)), rounded = channels_last(std::move(rounded));
  const Costs costs = costs_of(plain, rounded, context.target);
  if (!costs.taken) return costs.taken;
  return costs.after < costs.before ? yes() : no("is not faster in bfloat16 on this target");
}

/// The weights in bfloat16, a factor of the product inside; nothing when one of them does not fit.
std::optional<Tensor> rounded_weights(const Node& node) {
  const Tensor& weights = *weights_in(node)->constant();
  const float factor = is_conv(node) ? 1 : node.attrs.number("scale");
  bool fits = true;
  Tensor made = Tensor::make(DType::bf16, weights.dims(), [&](std::byte* bytes) {
    std::ranges::transform(weights.as<float>(), reinterpret_cast<std::uint16_t*>(bytes), [&](float w) {
      const std::uint16_t bits = to_bf16(w * factor);
      fits &= std::isfinite(from_bf16(bits));
      return bits;
    });
  });
  return fits ? std::optional(std::move(made)) : std::nullopt;
}

Verdict lower(Node& node, Context& context) {
  if (Verdict v = check(node, context); !v) return v;
  if (Verdict v = pays(node, context); !v) return v;
  const std::optional<Tensor> weights = rounded_weights(node);
  if (!weights) return no("holds numbers that are not finite", weights_in(node)->name());
  Graph& graph = node.graph();
  std::vector<Value*> inputs = node.inputs();
  inputs[*weights_place(node)] = &graph.add_constant(*weights, weights_in(node)->name() + "_bf16");
  Node& made = graph.add("modelflow." + bf16_kind(node), inputs,
                         {.before = &node, .attrs = attrs_of(node, context), .name = node.name});
  complete(made);
  infer_types(made, context.model);
  made.doc = node.doc;
  graph.replace(*node.output(), *made.output());
  graph.erase(node);
  return yes();
}

int run(Graph& graph, Context& context) {
  if (!context.plan) return 0;
  std::vector<Node*> nodes = nodes_of(graph, Family::product, Form::f32);
  if (rounds_activations(context))
    std::ranges::copy(nodes_of(graph, Family::convolution, Form::f32), std::back_inserter(nodes));
  int changes = 0;
  for (Node* node : nodes) {
    if (const Verdict verdict = lower(*node, context); !verdict) {
      context.miss("to-bf16", node, verdict.reason);
      continue;
    }
    context.hit("to-bf16");
    ++changes;
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass to_bfloat16() {
  return {.name = "to-bf16",
          .doc = "Products (and convolutions, where the target multiplies bfloat16) by constants: weights in bfloat16",
          .run = run};
}

}  // namespace modelflow::passes
