// ONNX text that quantizes rows to 8-bit integers with a scale for each row.
#include "backends/ops/row_steps.h"

#include "backends/ops/activation_body.h"

namespace modelflow::ops {

std::string row_steps_text(int opset, const std::string& x, const std::string& prefix) {
  const std::string& p = prefix;
  const std::string most = opset < 18 ? " = ReduceMax <axes = [-1], keepdims = 1> (" + p + "magnitude)\n"
                                      : " = ReduceMax <keepdims = 1> (" + p + "magnitude, " + p + "last)\n";
  const auto index = [&](const char* name, const char* value) {
    return p + name + " = Constant <value = int64[1] {" + value + "}> ()\n";
  };
  // The Slice changes nothing but where x has no rows: there ONNX Runtime's ReduceMax keeps the axis as it is.
  return p + "magnitude = Abs (" + x + ")\n" + index("first", "0") + index("one", "1") + index("last", "-1") + p +
         "most" + most + p + "largest = Slice (" + p + "most, " + p + "first, " + p + "one, " + p + "last)\n" +
         constant_text(p + "tiny", 1e-30f) + constant_text(p + "limit", 127) + p + "range = Max (" + p + "largest, " +
         p + "tiny)\n" + p + "inverse = Div (" + p + "limit, " + p + "range)\n" + p + "scaled = Mul (" + x + ", " + p +
         "inverse)\n" + p + "steps = Round (" + p + "scaled)\n" + p + "unit = Div (" + p + "range, " + p + "limit)\n";
}

}  // namespace modelflow::ops
