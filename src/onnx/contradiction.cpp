// The first node that is impossible by what its inputs are.
#include "src/onnx/contradiction.h"

#include "src/onnx/infer_node.h"

namespace modelflow {
namespace {

/// A tensor in the file of a type that the format does not have: the reader keeps it as it is. Null when all are fine.
const Value* of_no_type(const Graph& graph) {
  const auto strange = [](const Value* value) {
    return value && !value->producer() && !value->is_graph_input() && !value->initializer() &&
           value->type.is_tensor() && name(value->dtype()) == name(DType::undefined);
  };
  for (const auto& node : graph.nodes()) {
    for (const Value* input : node->inputs())
      if (strange(input)) return input;
    for (const Graph* inner : node->subgraphs())
      if (const Value* value = of_no_type(*inner)) return value;
  }
  return nullptr;
}

void forget_types(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (Value* output : node->outputs())
      if (output && !output->is_graph_output()) output->type = {};
    for (Graph* inner : node->subgraphs()) forget_types(*inner);
  }
}

}  // namespace

std::string contradiction(const Model& model) {
  if (const Value* value = of_no_type(model.graph()))
    return "initializer '" + value->name() + "' has the tensor type " +
           std::to_string(static_cast<int>(value->dtype())) + ", which ONNX does not have";
  Model copy = model;
  forget_types(copy.graph());
  Inference inference(copy);
  inference.run(copy.graph());
  return inference.contradiction();
}

}  // namespace modelflow
