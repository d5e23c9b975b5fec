// A model of one call of a fused op.
#pragma once

#include <string>

#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"
#include "src/emit/emit.h"

namespace modelflow {

inline std::string describe(const Call& call) {
  std::string text = call.op + "(";
  for (const Operand& in : call.inputs) text += in.name + in.shape.str() + (in.constant ? "* " : " ");
  text += ")";
  for (const auto& [name, value] : call.attrs) {
    if (const auto* words = std::get_if<std::string>(&value)) text += " " + name + "=" + *words;
    if (const auto* number = std::get_if<std::int64_t>(&value)) text += " " + name + "=" + std::to_string(*number);
  }
  return text;
}

/// A model of this one call whose inputs have symbols for dims (but for how many sizes there are, which inference has
/// to know), with the constants of the call inside.
inline Model model_of(const Call& call, std::int64_t opset) {
  Model model;
  model.opsets[""] = opset;
  model.ir_version = 8;
  Graph& graph = model.graph();
  std::vector<Value*> inputs;
  for (const Operand& in : call.inputs) {
    if (in.constant) {
      inputs.push_back(&graph.add_constant(*in.constant, in.name));
      continue;
    }
    std::vector<Dim> dims;
    for (std::size_t axis = 0; axis < in.shape.rank(); ++axis)
      dims.push_back(in.name == "sizes" ? in.shape[axis] : Dim::symbol(in.name + "_" + std::to_string(axis)));
    inputs.push_back(&graph.add_input(in.name, Type::tensor(in.dtype, dims)));
  }
  Node& node = graph.add("modelflow." + call.op, inputs, {.outputs = call.outputs.size(), .attrs = call.attrs});
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    graph.rename(*node.output(i), call.outputs[i].name);
    node.output(i)->type = Type::tensor(call.outputs[i].dtype, Shape(std::vector<Dim>(call.outputs[i].shape.rank())));
    graph.add_output(*node.output(i));
  }
  emit_functions(model);
  return model;
}

}  // namespace modelflow
