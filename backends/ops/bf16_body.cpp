// Bodies of ops in bfloat16: Casts in front of the float32 body, and one behind it.
#include "backends/ops/bf16_body.h"

namespace modelflow::ops {

std::string body_behind(const std::string& casts, const FusedOp& op, const Call& call, int opset) {
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "bfloat16 needs the Cast of opset 13, the model has " + std::to_string(opset));
  const std::string open = "{\n";
  return open + casts + op.body(call, opset).substr(open.size());
}

std::string widening(const std::string& y, const std::string& x) { return y + " = Cast <to = 1> (" + x + ")\n"; }

std::string rounding_result(std::string body) {
  const std::string result = "\ny = ";
  const std::size_t at = body.rfind(result);
  if (at == std::string::npos || body.back() != '}')
    throw Error(ErrorKind::internal, "a body without a result: " + body);
  body.replace(at, result.size(), "\ny_full = ");
  body.pop_back();
  if (body.back() != '\n') body += '\n';
  return body + "y = Cast <to = 16> (y_full)\n}";
}

}  // namespace modelflow::ops
