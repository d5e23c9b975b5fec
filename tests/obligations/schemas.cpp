// Attributes and optional inputs of operators, by their schemas.
#include "tests/obligations/schemas.h"

#include <onnx/defs/schema.h>

namespace modelflow::obligations {
namespace {

const onnx::OpSchema* schema_of(const Node& node, const Model& model) {
  const auto version = model.opsets.find(node.domain());
  if (version == model.opsets.end()) return nullptr;
  return onnx::OpSchemaRegistry::Schema(node.op(), static_cast<int>(version->second), node.domain());
}

AttributeKind::Type kind_of(onnx::AttributeProto_AttributeType type) {
  switch (type) {
    case onnx::AttributeProto::INT:
      return AttributeKind::Type::integer;
    case onnx::AttributeProto::FLOAT:
      return AttributeKind::Type::number;
    case onnx::AttributeProto::STRING:
      return AttributeKind::Type::text;
    case onnx::AttributeProto::INTS:
      return AttributeKind::Type::integers;
    case onnx::AttributeProto::FLOATS:
      return AttributeKind::Type::numbers;
    default:
      return AttributeKind::Type::other;
  }
}

}  // namespace

std::vector<AttributeKind> attributes_of(const Node& node, const Model& model) {
  std::vector<AttributeKind> kinds;
  if (const onnx::OpSchema* schema = schema_of(node, model))
    for (const auto& [name, attribute] : schema->attributes())
      kinds.push_back({name, kind_of(attribute.type), attribute.required});
  return kinds;
}

std::vector<std::size_t> optional_inputs(const Node& node, const Model& model) {
  std::vector<std::size_t> indices;
  const onnx::OpSchema* schema = schema_of(node, model);
  for (std::size_t i = 0; schema && i < schema->inputs().size(); ++i)
    if (schema->inputs()[i].GetOption() == onnx::OpSchema::Optional) indices.push_back(i);
  return indices;
}

}  // namespace modelflow::obligations
