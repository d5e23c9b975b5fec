// ONNX text of scales and zero points, and their check.
#include "backends/ops/quantize_text.h"

#include <cmath>

#include "backends/call_attrs.h"

namespace modelflow::ops {

std::string quantization_text(std::string_view prefix) {
  const std::string of(prefix);
  return of + "scale = Constant <value_float: float = @" + of + "scale> ()\n" + of +
         "zero_int = Constant <value_int: int = @" + of + "zero_point> ()\n" + of + "zero = Cast <to = 2> (" + of +
         "zero_int)\n";
}

Verdict check_quantization(const CallAttrs& attrs, std::string_view prefix) {
  const std::string of(prefix);
  const float scale = attrs.number(of + "scale");
  const std::int64_t zero = attrs.integer(of + "zero_point");
  if (!(scale > 0) || !std::isfinite(scale)) return no(of + "scale is not a positive number");
  return zero >= 0 && zero <= 255 ? yes() : no(of + "zero_point is not in [0, 255]");
}

}  // namespace modelflow::ops
