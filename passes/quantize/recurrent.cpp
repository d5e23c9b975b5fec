// modelflow.LSTM and GRU -> QLSTM and QGRU: weights in 8 bits, one scale for each gate of each unit. The rows of x and
// h are quantized as they come, so no data is needed.
#include <algorithm>
#include <cmath>

#include "passes/graph/facts.h"
#include "passes/quantize/faster.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/scale.h"

namespace modelflow::passes {
namespace {

/// Below that, quantizing a row costs about what the shorter product saves.
constexpr std::int64_t kLeastDepth = 32;

bool finite(const Tensor& tensor) {
  const std::span<const float> values = tensor.as<float>();
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

Verdict check(const Node& node, const Context& context) {
  if (context.model.opset() < 13) return no("the opset is below 13");
  if (!context.plan->allows(node.name, Precision::i8)) return no("is to stay in higher precision");
  for (const std::size_t i : {1, 2}) {
    const Value& value = *node.input(i);
    const Tensor* weights = value.constant();
    if (!weights || weights->dtype() != DType::f32) return no("is no constant of float32", value.name());
    if (weights->elements() == 0) return no("is empty", value.name());
    if (!finite(*weights)) return no("holds numbers that are not finite", value.name());
  }
  const std::int64_t depth = node.input(2)->constant()->dims()[2];
  if (depth < kLeastDepth)
    return no("a depth of " + std::to_string(depth) + " does not pay for the steps", node.input(2)->name());
  return yes();
}

/// [dirs, gates * hidden, depth] with a scale for each row.
QuantizedWeights quantized_rows(const Tensor& weights) {
  const Dims& dims = weights.dims();
  const QuantizedWeights rows = quantize_weights(weights.reshaped({dims[0] * dims[1], dims[2]}), 0);
  return {rows.values.reshaped(dims), rows.scales.reshaped({dims[0], dims[1]})};
}

bool quantize(Node& node, Context& context, TypicalSizes& sizes) {
  Graph& graph = node.graph();
  const QuantizedWeights w = quantized_rows(*node.input(1)->constant()), r = quantized_rows(*node.input(2)->constant());
  const std::string &w_name = node.input(1)->name(), &r_name = node.input(2)->name();
  std::vector<Value*> inputs = {
      node.input(0), &graph.add_constant(w.values, w_name + "_steps"), &graph.add_constant(r.values, r_name + "_steps"),
      &graph.add_constant(w.scales, w_name + "_scale"), &graph.add_constant(r.scales, r_name + "_scale")};
  inputs.insert(inputs.end(), node.inputs().begin() + 3, node.inputs().end());
  if (!make_faster(graph, context, "quantize-recurrent", "modelflow.Q" + node.op(), inputs, node.attrs, node, sizes)) {
    for (std::size_t i = 1; i < 5; ++i) graph.erase(*inputs[i]);
    return false;
  }
  context.hit("quantize-recurrent");
  return true;
}

int run(Graph& graph, Context& context) {
  if (!context.plan) return 0;
  const std::vector<Node*> nodes = nodes_of(graph, Family::recurrence, Form::f32);
  TypicalSizes sizes(context);
  int changes = 0;
  for (Node* node : nodes) {
    if (!in_form(*fused_op(*node), Form::i8)) continue;
    if (const Verdict verdict = check(*node, context); verdict) {
      changes += quantize(*node, context, sizes);
    } else {
      context.miss("quantize-recurrent", node, verdict.reason);
    }
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass quantize_recurrent() {
  return {.name = "quantize-recurrent",
          .doc = "LSTM and GRU: weights in 8 bits, the rows of x and h quantized one by one",
          .run = run};
}

}  // namespace modelflow::passes
