// modelflow.MatMul with constant weights -> QMatMul (weights in 8 bits, one scale per column) or QMatMul4 (4 bits, one
// scale per block of a column). The rows of a are quantized as they come, so no data is needed.
#include <algorithm>
#include <optional>

#include "modelflow/modelflow.h"
#include "passes/graph/blocked_weights.h"
#include "passes/graph/facts.h"
#include "passes/graph/imported_weights.h"
#include "passes/quantize/faster.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/scale.h"

namespace modelflow::passes {
namespace {

// Below that, quantizing a row costs about what the shorter product saves.
constexpr std::int64_t kLeastDepth = 64;
constexpr std::int64_t kBlock = 32;

Verdict check(const Node& node, const Context& context) {
  if (context.model.opset() < 13) return no("the opset is below 13");
  if (!context.plan->allows(node.name, Precision::i8)) return no("is to stay in higher precision");
  const Value& b = *weights_in(node);
  const Tensor* weights = b.constant();
  if (!weights || weights->dtype() != DType::f32) return no("is no constant of float32", b.name());
  if (weights->rank() != 2) return no("is not of rank 2", b.name());
  if (node.attrs.integer("trans_a")) return no("a is transposed");
  if (node.attrs.integer("row_bias")) return no("the weights stand on the left");
  const bool trans_b = node.attrs.integer("trans_b") != 0;
  const std::int64_t k = weights->dims()[trans_b], n = weights->dims()[1 - trans_b];
  if (k < kLeastDepth) return no("a depth of " + std::to_string(k) + " does not pay for the steps", b.name());
  if (n == 0) return no("is empty", b.name());
  return finite(*weights) ? yes() : no("holds numbers that are not finite", b.name());
}

/// What a node keeps besides a and b, and the attributes that the quantized op has too.
struct Rest {
  std::vector<Value*> inputs;
  Attrs attrs;
  float scale;
};

Rest rest_of(const Node& node) {
  Rest rest{{node.inputs().begin() + 2, node.inputs().end()}, node.attrs, node.attrs.number("scale")};
  for (const char* name : {"scale", "trans_a", "row_bias"}) rest.attrs.erase(name);
  return rest;
}

Tensor times(const Tensor& scales, float factor) {
  return Tensor::make(DType::f32, scales.dims(), [&](std::byte* out) {
    const std::span<const float> from = scales.as<float>();
    std::transform(from.begin(), from.end(), reinterpret_cast<float*>(out), [&](float x) { return x * factor; });
  });
}

/// The node with other weights, where that is faster.
Node* replaced(Node& node, std::string_view op, const Tensor& values, const Tensor& scales, Rest rest, Context& context,
               TypicalSizes& sizes) {
  Graph& graph = node.graph();
  const std::string& stem = weights_in(node)->name();
  std::vector<Value*> inputs = {node.input(0), &graph.add_constant(values, stem + "_steps"),
                                &graph.add_constant(times(scales, rest.scale), stem + "_scale")};
  inputs.insert(inputs.end(), rest.inputs.begin(), rest.inputs.end());
  Node* made = make_faster(graph, context, "quantize-products", op, inputs, std::move(rest.attrs), node, sizes);
  if (!made)
    for (std::size_t i : {1, 2}) graph.erase(*inputs[i]);
  return made;
}

bool in_4_bits(Node& node, Context& context, TypicalSizes& sizes) {
  const Tensor& weights = *weights_in(node)->constant();
  const bool trans_b = node.attrs.integer("trans_b") != 0;
  if (weights.dims()[trans_b] % kBlock != 0) {
    context.miss("quantize-products-4", &node, "the depth is no multiple of " + std::to_string(kBlock));
    return false;
  }
  Rest rest = rest_of(node);
  rest.attrs.erase("trans_b");
  rest.attrs.set("block", kBlock);
  const BlockedWeights packed = blocked_weights(weights, trans_b, {.block = kBlock});
  return replaced(node, "modelflow.QMatMul4", packed.values, packed.scales, std::move(rest), context, sizes) != nullptr;
}

bool in_8_bits(Node& node, Context& context, TypicalSizes& sizes) {
  const bool trans_b = node.attrs.integer("trans_b") != 0;
  Rest rest = rest_of(node);
  const std::size_t columns = trans_b ? 0 : 1;
  const std::optional<QuantizedWeights> arrived = imported_weights(*weights_in(node), columns);
  // Weights with zero points arrive with their activations, and both are taken together or not at all.
  const QuantizedWeights weights = arrived && !arrived->zero_points
                                       ? *arrived
                                       : quantize_weights(*weights_in(node)->constant(), columns,
                                                          {.bounded_pairs = adds_pairs_in_16_bits(context.target)});
  return replaced(node, "modelflow.QMatMul", weights.values, weights.scales, std::move(rest), context, sizes) !=
         nullptr;
}

int run(Graph& graph, Context& context) {
  if (!context.plan) return 0;
  const std::vector<Node*> products = nodes_of(graph, Family::product, Form::f32);
  TypicalSizes sizes(context);
  int changes = 0;
  for (Node* node : products) {
    if (const Verdict verdict = check(*node, context); !verdict) {
      context.miss("quantize-products", node, verdict.reason);
      continue;
    }
    const bool four = context.options.precision == Precision::i4_weights;
    if (!(four && in_4_bits(*node, context, sizes)) && !in_8_bits(*node, context, sizes)) continue;
    context.hit("quantize-products");
    ++changes;
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass quantize_products() {
  return {.name = "quantize-products",
          .doc = "Products by constants: weights in 8 or 4 bits, activations quantized row by row",
          .run = run};
}

}  // namespace modelflow::passes
