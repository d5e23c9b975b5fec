// Which standard operators an opset has.
#include "src/onnx/operators.h"

#include <onnx/defs/schema.h>

#include "src/onnx/proto.h"

namespace modelflow {

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
