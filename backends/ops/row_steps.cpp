// ONNX text that quantizes rows to 8-bit integers with a scale for each row.
#include "backends/ops/row_steps.h"

#include "backends/ops/activation_body.h"

namespace modelflow::ops {

std::string row_steps_text(int opset, const std::string& x, const std::string& prefix) {
  const std::string& p = prefix;
  const auto index = [&](const char* name, const char* value) {
    return p + name + " = Constant <value = int64[1] {" + value + "}> ()\n";
  };
  // The Slice changes nothing but where x has no rows: there ONNX Runtime's reductions keep the axis as it is.
  const auto of_rows = [&](const char* name, const char* op, int axes_are_inputs, const char* values) {
    const std::string all = p + name + "_of_all", from = "(" + p + values;
    return all + " = " + op +
           (opset < axes_are_inputs ? " <axes = [-1], keepdims = 1> " + from + ")\n"
                                    : " <keepdims = 1> " + from + ", " + p + "last)\n") +
           p + name + " = Slice (" + all + ", " + p + "first, " + p + "one, " + p + "last)\n";
  };
  // The largest of numbers and NaN is a number, their sum is not: 0 times it makes a row with NaN or an infinity NaN.
  return p + "magnitude = Abs (" + x + ")\n" + index("first", "0") + index("one", "1") + index("last", "-1") +
         of_rows("largest", "ReduceMax", 18, "magnitude") + constant_text(p + "tiny", 1e-30f) +
         constant_text(p + "limit", 127) + p + "range = Max (" + p + "largest, " + p + "tiny)\n" + p +
         "inverse = Div (" + p + "limit, " + p + "range)\n" + p + "scaled = Mul (" + x + ", " + p + "inverse)\n" + p +
         "steps = Round (" + p + "scaled)\n" + of_rows("row_total", "ReduceSum", 13, "scaled") +
         constant_text(p + "nothing", 0) + p + "no_number = Mul (" + p + "row_total, " + p + "nothing)\n" + p +
         "finite_unit = Div (" + p + "range, " + p + "limit)\n" + p + "unit = Add (" + p + "finite_unit, " + p +
         "no_number)\n";
}

}  // namespace modelflow::ops
