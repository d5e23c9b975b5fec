// Which standard operators an opset has.
#include "src/onnx/operators.h"

#include <onnx/defs/schema.h>

#include "src/onnx/proto.h"

namespace modelflow {

Verdict in_opset(const Node& node, int opset) {
  const auto* schema = proto::OpSchemaRegistry::Schema(node.op(), opset, "");
  const std::string version = "opset " + std::to_string(opset);
  if (!schema) return no(version + " has no " + node.op());
  const auto inputs = static_cast<int>(node.inputs().size());
  if (inputs < schema->min_input() || inputs > schema->max_input())
    return no(node.op() + " of " + version + " has other inputs");
  return yes();
}

}  // namespace modelflow
