// bfloat16 spelled out: an op in float32, a Cast to bfloat16 and one back.
#include "src/precision/rounded.h"

#include <algorithm>
#include <vector>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"

namespace modelflow {
namespace {

bool is_short(const Value* value) { return value && value->type.is_tensor() && value->dtype() == DType::bf16; }

Tensor widened(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_doubles();
  return Tensor::make(DType::f32, tensor.dims(), [&](std::byte* to) {
    std::ranges::transform(values, reinterpret_cast<float*>(to), [](double v) { return static_cast<float>(v); });
  });
}

Value& cast(Graph& graph, Value& value, DType to, Node* before) {
  Node& made = graph.add("Cast", {&value}, {.before = before, .attrs = {{"to", static_cast<std::int64_t>(to)}}});
  made.output()->type = Type::tensor(to, value.shape());
  return *made.output();
}

/// What reads the value reads it rounded from now on.
void round(Graph& graph, Value& value, Node* before) {
  const std::vector<Use> readers = value.uses();
  Value& rounded = cast(graph, cast(graph, value, DType::bf16, before), DType::f32, before);
  for (const Use& use : readers) use.node->graph().set_input(*use.node, use.index, &rounded);
}

}  // namespace

Model rounded_in_float32(const Model& model) {
  Model made = inline_functions(model);
  infer_types(made);
  Graph& graph = made.graph();
  for (Value* value : graph.initializers())
    if (value->constant() && is_short(value)) {
      graph.set_initializer(*value, widened(*value->constant()));
      value->type.dtype = DType::f32;
    }
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = *nodes[i];
    if (node.is("Cast") && node.attrs.integer("to") == static_cast<std::int64_t>(DType::bf16)) node.attrs.set("to", 1);
    if (const Tensor* value = node.attrs.tensor("value"); value && value->dtype() == DType::bf16)
      node.attrs.set("value", widened(*value));
    for (Value* output : node.outputs()) {
      if (!is_short(output)) continue;
      output->type.dtype = DType::f32;
      if (!passes::is_view(node)) round(graph, *output, i + 1 < nodes.size() ? nodes[i + 1] : nullptr);
    }
  }
  return made;
}

}  // namespace modelflow
