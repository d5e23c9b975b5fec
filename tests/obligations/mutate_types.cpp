// Element types of the whole model or of one input, and opset versions.
#include "tests/obligations/mutation.h"

namespace modelflow::obligations {
namespace {

constexpr int kOldest = 7, kNewest = 26;

/// Everything that says `from` says `to`: inputs, constants, types in attributes.
void exchange(Model& model, DType from, DType to) {
  for (Graph* graph : all_graphs(model)) {
    for (Value* input : graph->inputs())
      if (input->type.is_tensor() && input->dtype() == from) input->type.dtype = to;
    for (Value* value : graph->initializers()) {
      const Tensor tensor = *value->initializer();
      if (tensor.dtype() == from) graph->set_initializer(*value, encode(to, tensor.dims(), tensor.to_doubles()));
    }
    for (const auto& node : graph->nodes()) {
      for (const char* name : {"to", "dtype"})
        if (node->attrs.has(name) && node->attrs.integer(name) == static_cast<std::int64_t>(from))
          node->attrs.set(name, static_cast<std::int64_t>(to));
      if (const Tensor* value = node->attrs.tensor("value"); value && value->dtype() == from)
        node->attrs.set("value", encode(to, value->dims(), value->to_doubles()));
    }
  }
}

/// The input comes in another type and is cast to the one it had.
void behind_cast(Model& model, std::size_t index, DType dtype) {
  Graph& graph = model.graph();
  Value& input = *graph.inputs().at(index);
  const DType old = input.dtype();
  const std::vector<Use> uses = input.uses();
  Node* first = nullptr;
  for (const auto& node : graph.nodes()) {
    first = node.get();
    break;
  }
  if (!first) return;
  input.type.dtype = dtype;
  Node& cast = graph.add("Cast", {&input}, {.before = first, .attrs = {{"to", Attr(static_cast<std::int64_t>(old))}}});
  for (const Use& use : uses) use.node->graph().set_input(*use.node, use.index, cast.output());
}

}  // namespace

void mutate_types(const Model& model, Mutations& out) {
  for (const DType from : {DType::f32, DType::i64, DType::i32, DType::u8, DType::i8, DType::f16})
    for (const DType to : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i8,
                           DType::u8, DType::u32, DType::i16, DType::boolean}) {
      if (from == to) continue;
      out.push_back(
          {std::string(name(from)) + " -> " + std::string(name(to)), [=](Model& copy) { exchange(copy, from, to); }});
    }
  for (std::size_t i = 0; i < model.graph().inputs().size(); ++i)
    for (const DType to : {DType::f32, DType::f64, DType::f16, DType::i64, DType::i32, DType::u8, DType::boolean})
      out.push_back({"input " + model.graph().inputs()[i]->name() + " comes as " + std::string(name(to)),
                     [=](Model& copy) { behind_cast(copy, i, to); }});
  for (int version = kOldest; version <= kNewest; ++version)
    out.push_back({"opset " + std::to_string(version), [=](Model& copy) { copy.opsets[""] = version; }});
}

}  // namespace modelflow::obligations
