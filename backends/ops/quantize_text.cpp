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

std::string four_bits_text() {
  return "four = Constant <value = uint8 {4}> ()\nthree = Constant <value = int64[1] {3}> ()\n"
         "high = BitShift <direction = \"RIGHT\"> (b, four)\nleft = BitShift <direction = \"LEFT\"> (b, four)\n"
         "low = BitShift <direction = \"RIGHT\"> (left, four)\nhigh_halves = Unsqueeze (high, three)\n"
         "low_halves = Unsqueeze (low, three)\nhalves = Concat <axis = 3> (low_halves, high_halves)\n"
         "b_floats = Cast <to = 1> (halves)\nb_form = Constant <value = int64[3] {0, 0, -1}> ()\n"
         "b_steps = Reshape (b_floats, b_form)\n";
}

std::string blocked_weights_text() {
  return "b_centered = Sub (b_steps, zero)\nb_unit = Unsqueeze (b_scale, two)\nb_scaled = Mul (b_centered, b_unit)\n"
         "w_form = Constant <value = int64[2] {0, -1}> ()\nw_rows = Reshape (b_scaled, w_form)\n"
         "w = Transpose <perm = [1, 0]> (w_rows)\n";
}

}  // namespace modelflow::ops
