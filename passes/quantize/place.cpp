// A QuantizeLinear and a DequantizeLinear behind every value that is kept in 8 bits. All readers read the pair; but
// where the floats are there anyway, as inputs and outputs of the graph are, only those that compute in 8 bits do. What
// the pair costs where no quantized op takes it in is what the values were chosen to avoid.
#include <unordered_map>

#include "passes/quantize/quantize.h"
#include "passes/quantize/quantized_values.h"
#include "passes/quantize/scale.h"

namespace modelflow::passes {
namespace {

Value& node_in(Graph& graph, std::string_view op, std::vector<Value*> inputs, Node* before, Type type) {
  Node& node = graph.add(op, std::move(inputs), {.before = before});
  node.output()->type = std::move(type);
  return *node.output();
}

/// The node behind each node; null stands for the start of the graph.
std::unordered_map<const Node*, Node*> successors(const Graph& graph) {
  std::unordered_map<const Node*, Node*> next;
  const Node* last = nullptr;
  for (const auto& node : graph.nodes()) {
    next[last] = node.get();
    last = node.get();
  }
  return next;
}

/// `before`: the node behind the one that computes the value.
void place(Graph& graph, Value& value, const QuantizedValues& chosen, Node* before) {
  const Quantization q = u8_of(chosen.range(value));
  const bool floats_stay = !value.producer() || value.is_graph_output();
  Value& scale = graph.add_constant(Tensor::scalar(q.scale), value.name() + "_scale");
  const auto zero = static_cast<std::uint8_t>(q.zero_point);
  Value& zero_point = graph.add_constant(Tensor::scalar(zero), value.name() + "_zero_point");
  const std::vector<Use> readers = value.uses();
  Value& quantized =
      node_in(graph, "QuantizeLinear", {&value, &scale, &zero_point}, before, Type::tensor(DType::u8, value.shape()));
  Value& back = node_in(graph, "DequantizeLinear", {&quantized, &scale, &zero_point}, before,
                        Type::tensor(DType::f32, value.shape()));
  for (const Use& use : readers) {
    if (floats_stay && !chosen.reads_bytes(*use.node)) continue;
    const bool extents = use.node->is("Shape") || use.node->is("Size");  // no reason to make floats
    use.node->graph().set_input(*use.node, use.index, extents ? &quantized : &back);
  }
}

/// It comes from 8 bits: another rounding, to other steps, would only lose digits.
bool arrived_in_bytes(const Value& value) {
  const Node* producer = value.producer();
  if (!producer || !producer->is("DequantizeLinear") || producer->input(0)->dtype() != DType::u8) return false;
  const Tensor* scale = producer->input(1)->constant();
  return scale && scale->elements() == 1;
}

int run(Graph& graph, Context& context) {
  if (!context.plan) return 0;
  const QuantizedValues chosen(graph, context);
  auto next = successors(graph);  // pairs stand between a node and the one that was behind it
  int placed = 0;
  for (Value* value : chosen.values()) {
    if (arrived_in_bytes(*value)) continue;
    place(graph, *value, chosen, next[value->producer()]);
    ++placed;
  }
  context.hit("place-quantizers", placed);
  return placed;
}

}  // namespace

std::vector<std::string> values_to_observe(const Graph& graph) {
  std::vector<std::string> names;
  const auto add = [&](const Value* value) {
    if (value && value->dtype() == DType::f32 && !value->is_initializer()) names.push_back(value->name());
  };
  for (const Value* input : graph.inputs()) add(input);
  for (const auto& node : graph.nodes())
    for (const Value* output : node->outputs()) add(output);
  return names;
}

Pass place_quantizers() {
  return {.name = "place-quantizers",
          .doc = "QuantizeLinear and DequantizeLinear (uint8, per tensor) around convolutions and what moves between",
          .run = run};
}

}  // namespace modelflow::passes
