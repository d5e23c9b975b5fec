// Convolutions and products of quantized models that no op in 8 bits took: ONNX Runtime must not round their weights.
#include <algorithm>
#include <optional>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/graph/imported_weights.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

/// The ops whose float32 weights and bias ONNX Runtime (since 1.20, WeightBiasQuantization) rounds to 8 bits, one scale
/// for all of them, between DequantizeLinear and QuantizeLinear. Weights of 8 bits with a scale per channel lose much.
/// It makes Gemm of MatMul and Add first.
bool would_be_rounded(const Node& node) {
  if (input_as(node, "residual")) return false;
  return computes(node, Family::convolution, Form::f32) || computes(node, Family::product, Form::f32) ||
         node.is("Conv") || node.is("ConvTranspose") || node.is("Gemm") || node.is("MatMul");
}

/// QuantizeLinear reads it, at once or behind Relu or Clip.
bool quantized_again(const Value& value) {
  std::vector<const Value*> ahead = {&value};
  while (!ahead.empty()) {
    const Value& next = *ahead.back();
    ahead.pop_back();
    for (const Use& use : next.uses()) {
      if (use.node->is("QuantizeLinear") && use.index == 0) return true;
      if (use.node->is("Relu") || use.node->is("Clip")) ahead.push_back(use.node->output());
    }
  }
  return false;
}

/// The DequantizeLinear in front of `x`, where it has one scale for all elements.
const Node* dequantized(const Value& x) {
  const Node* node = x.producer();
  if (!node || !node->is("DequantizeLinear") || &node->graph() != &x.graph()) return nullptr;
  const Tensor* scale = node->input(1)->constant();
  if (!scale || scale->elements() != 1) return nullptr;
  return node->input(2) && !node->input(2)->constant() ? nullptr : node;
}

/// An axis that can have more than one scale; channels rather than the batch.
std::optional<std::size_t> axis_of_scales(const Value& x) {
  const std::size_t rank = rank_of(&x).value_or(0);
  for (std::size_t i = 1; i <= rank; ++i)
    if (x.shape()[i % rank].number().value_or(1) > 1) return i % rank;
  return {};
}

/// `value` as often as that.
Value& repeated(Graph& graph, const Value& value, std::int64_t times) {
  const Tensor one = value.constant()->reshaped({1});
  return graph.add_constant(stacked(std::vector<const Tensor*>(static_cast<std::size_t>(times), &one)), value.name());
}

/// The same numbers by a DequantizeLinear of one scale per index of the axis, which ONNX Runtime lets be.
void read_per_axis(Node& reader, const Node& dequantize, std::size_t axis) {
  Graph& graph = reader.graph();
  const Value& x = *dequantize.output();
  const std::int64_t extent = x.shape()[axis].value();
  std::vector<Value*> inputs = {dequantize.input(0), &repeated(graph, *dequantize.input(1), extent)};
  if (const Value* zero = dequantize.input(2)) inputs.push_back(&repeated(graph, *zero, extent));
  Attrs attrs = dequantize.attrs;
  attrs.set("axis", static_cast<std::int64_t>(axis));
  Node& made = graph.add("DequantizeLinear", inputs, {.before = &reader, .attrs = attrs});
  made.output()->type = x.type;
  graph.set_input(reader, 0, made.output());
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (const Value* weights : imported(graph))
    for (const Use& use : std::vector<Use>(weights->uses())) {
      Node& node = *use.node;
      if (weights_in(node) != weights || !would_be_rounded(node) || !quantized_again(*node.output())) continue;
      if (context.model.opset() < 13) {  // the first with scales along an axis
        context.miss("keep-float", &node, "the opset is below 13");
        continue;
      }
      const Node* dequantize = dequantized(*node.input(0));
      const std::optional<std::size_t> axis = axis_of_scales(*node.input(0));
      if (!dequantize || !axis) continue;
      read_per_axis(node, *dequantize, *axis);
      ++changes;
    }
  forget_weights(graph);
  graph.prune();
  if (changes) context.hit("keep-float", changes);
  return changes;
}

}  // namespace

Pass keep_float() {
  return {.name = "keep-float",
          .doc = "Convolutions and products of quantized models that stay float32 also without the plugin",
          .run = run};
}

}  // namespace modelflow::passes
