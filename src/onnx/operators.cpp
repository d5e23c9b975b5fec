// Which standard operators an opset has.
#include "src/onnx/operators.h"

#include <onnx/defs/schema.h>

#include "src/onnx/proto.h"

namespace modelflow {

bool has_operator(std::string_view op, int opset) {
  return proto::OpSchemaRegistry::Schema(std::string(op), opset, "") != nullptr;
}

}  // namespace modelflow
