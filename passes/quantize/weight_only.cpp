// modelflow.MatMul with constant weights -> MatMulNBits, for GPUs: weights in 8 or 4 bits with a scale for each block
// of a column, activations in the floats of 16 bits that they are in already.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/blocked_weights.h"
#include "passes/graph/facts.h"
#include "passes/quantize/faster.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/scale.h"
#include "src/core/half.h"

namespace modelflow::passes {
namespace {

constexpr std::int64_t kBlock = 32;

/// The constant in float32, times the factor of the product.
Tensor weights_of(const Node& node) {
  const Tensor weights = in_float32(*weights_in(node)->constant());
  const float factor = node.attrs.number("scale");
  return Tensor::make(DType::f32, weights.dims(), [&](std::byte* to) {
    std::ranges::transform(weights.as<float>(), reinterpret_cast<float*>(to), [&](float w) { return w * factor; });
  });
}

Verdict check(const Node& node, const Context& context) {
  if (!context.plan->allows(node.name, context.options.precision)) return no("is to stay in higher precision");
  const Value& b = *weights_in(node);
  const Tensor* weights = b.constant();
  if (!weights || weights->dtype() != half_type(context.options))
    return no("is no constant of " + std::string(name(half_type(context.options))), b.name());
  if (weights->rank() != 2) return no("is not of rank 2", b.name());
  if (node.attrs.integer("trans_a")) return no("a is transposed");
  if (node.attrs.integer("row_bias")) return no("the weights stand on the left");
  const bool trans_b = node.attrs.integer("trans_b") != 0;
  if (weights->dims()[trans_b] == 0 || weights->dims()[trans_b] % kBlock != 0)
    return no("the depth is no multiple of " + std::to_string(kBlock), b.name());
  return yes();
}

bool replaced(Node& node, Context& context, TypicalSizes& sizes) {
  Graph& graph = node.graph();
  const int bits = context.options.precision == Precision::i4_weights ? 4 : 8;
  const Value& b = *weights_in(node);
  const Tensor floats = weights_of(node);
  if (!finite(floats)) {
    context.miss("weight-only", &node, no("holds numbers that are not finite", b.name()).reason);
    return false;
  }
  const BlockedWeights weights = blocked_weights(floats, node.attrs.integer("trans_b") != 0,
                                                 {.block = kBlock, .bits = bits, .scales = half_type(context.options)});
  Attrs attrs = node.attrs;
  for (const char* name : {"scale", "trans_a", "trans_b", "row_bias"}) attrs.erase(name);
  attrs.set("bits", bits).set("block", kBlock);
  std::vector<Value*> inputs = {node.input(0), &graph.add_constant(weights.values, b.name() + "_steps"),
                                &graph.add_constant(weights.scales, b.name() + "_scale")};
  inputs.insert(inputs.end(), node.inputs().begin() + 2, node.inputs().end());
  if (make_faster(graph, context, "weight-only", "modelflow.MatMulNBits", inputs, std::move(attrs), node, sizes))
    return true;
  for (const std::size_t i : {1, 2}) graph.erase(*inputs[i]);
  return false;
}

int run(Graph& graph, Context& context) {
  if (!context.plan) return 0;
  TypicalSizes sizes(context);
  int changes = 0;
  for (Node* node : nodes_of(graph, Family::product, Form::f32)) {
    if (const Verdict verdict = check(*node, context); !verdict)
      context.miss("weight-only", node, verdict.reason);
    else
      changes += replaced(*node, context, sizes);
  }
  if (changes) graph.prune();
  if (changes) context.hit("weight-only", changes);
  return changes;
}

}  // namespace

Pass weight_only() {
  return {.name = "weight-only",
          .doc = "Products by constants on a GPU: weights in 8 or 4 bits, a scale per block, activations as they are",
          .run = run};
}

}  // namespace modelflow::passes
