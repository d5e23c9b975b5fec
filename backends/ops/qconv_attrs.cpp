// Reads and checks the attributes of QConv, and scales and zero points.
#include "backends/ops/qconv_attrs.h"

#include <cmath>
#include <string>

#include "backends/call_attrs.h"

namespace modelflow::ops {

Quantization quantization(const CallAttrs& attrs, const std::string& of) {
  const float scale = attrs.number(of + "_scale");
  if (!std::isfinite(scale) || scale <= 0)
    throw Error(ErrorKind::invalid_input, of + "_scale is " + std::to_string(scale));
  const std::int64_t zero_point = attrs.integer(of + "_zero_point");
  if (zero_point < 0 || zero_point > 255)
    throw Error(ErrorKind::invalid_input, of + "_zero_point is " + std::to_string(zero_point) + ", not 0 to 255");
  return {scale, static_cast<std::int32_t>(zero_point)};
}

QConvAttrs::QConvAttrs(const CallAttrs& attrs)
    : conv(attrs), x(quantization(attrs, "x")), y(quantization(attrs, "y")), residual(quantization(attrs, "residual")) {
  if (conv.residual == Residual::times)
    throw Error(ErrorKind::invalid_input, "residual is 'times', which has no form in 8 bits");
}

}  // namespace modelflow::ops
