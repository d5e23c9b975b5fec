#include "backends/ops/bf16_body.h"

namespace modelflow::ops {

std::string body_behind(const std::string& casts, const FusedOp& op, const Call& call, int opset) {
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "bfloat16 needs the Cast of opset 13, the model has " + std::to_string(opset));
  const std::string open = "{\n";
  return open + casts + op.body(call, opset).substr(open.size());
}

}  // namespace modelflow::ops
