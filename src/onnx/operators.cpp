// Which standard operators an opset has.
#include "src/onnx/operators.h"

#include <onnx/defs/data_type_utils.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <vector>

#include "modelflow/modelflow.h"
#include "src/onnx/proto.h"

namespace modelflow {
namespace {

using Formals = std::vector<proto::OpSchema::FormalParameter>;

/// The last formal stands for all that follow.
bool allows(const Formals& formals, std::size_t index, DType type) {
  if (formals.empty()) return true;
  proto::TypeProto wanted;
  wanted.mutable_tensor_type()->set_elem_type(static_cast<int>(type));
  const auto& types = formals[std::min(index, formals.size() - 1)].GetTypes();
  return types.contains(onnx::Utils::DataTypeUtils::ToType(wanted));
}

std::string forbidden_type(const Graph& graph, DType type, std::int64_t opset) {
  for (const auto& node : graph.nodes()) {
    for (std::size_t i = 0; i < node->inputs().size(); ++i)
      if (node->input(i) && node->input(i)->dtype() == type && !allows_input(*node, i, type, opset))
        return node->label() + ": '" + node->input(i)->name() + "'";
    for (std::size_t i = 0; i < node->outputs().size(); ++i)
      if (node->output(i) && node->output(i)->dtype() == type && !allows_output(*node, i, type, opset))
        return node->label() + ": '" + node->output(i)->name() + "'";
    for (const Graph* inner : node->subgraphs())
      if (std::string found = forbidden_type(*inner, type, opset); !found.empty()) return found;
  }
  return "";
}

}  // namespace

bool allows_input(const Node& node, std::size_t index, DType type, std::int64_t opset) {
  const auto* schema = proto::OpSchemaRegistry::Schema(node.op(), static_cast<int>(opset), "");
  return !node.domain().empty() || !schema || allows(schema->inputs(), index, type);
}

bool allows_output(const Node& node, std::size_t index, DType type, std::int64_t opset) {
  const auto* schema = proto::OpSchemaRegistry::Schema(node.op(), static_cast<int>(opset), "");
  return !node.domain().empty() || !schema || allows(schema->outputs(), index, type);
}

std::string forbidden_type(const Model& model, DType type) {
  if (type == DType::undefined) return "";
  Model plain = inline_functions(model);
  infer_types(plain);
  return forbidden_type(plain.graph(), type, plain.opset());
}

Verdict in_opset(const Node& node, int opset) {
  const auto* schema = proto::OpSchemaRegistry::Schema(node.op(), opset, "");
  const std::string version = "opset " + std::to_string(opset);
  if (!schema || schema->deprecated()) return no(version + " has no " + node.op());
  const auto inputs = static_cast<int>(node.inputs().size());
  if (inputs < schema->min_input() || inputs > schema->max_input())
    return no(node.op() + " of " + version + " has other inputs");
  for (const auto& [name, attr] : node.attrs)
    if (!schema->attributes().contains(name)) return no(node.op() + " of " + version + " has no attribute " + name);
  return yes();
}

bool same_operator(const Node& node, std::int64_t a, std::int64_t b) {
  const auto schema = [&](std::int64_t version) {
    return proto::OpSchemaRegistry::Schema(node.op(), static_cast<int>(version), node.domain());
  };
  return schema(a) && schema(b) && schema(a)->SinceVersion() == schema(b)->SinceVersion();
}

}  // namespace modelflow
