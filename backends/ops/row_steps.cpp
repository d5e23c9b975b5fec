#include "backends/ops/row_steps.h"

#include "backends/ops/activation_body.h"

namespace modelflow::ops {

std::string row_steps_text(int opset, const std::string& x) {
  const std::string most = opset < 18 ? "most = ReduceMax <axes = [-1], keepdims = 1> (magnitude)\n"
                                      : "most = ReduceMax <keepdims = 1> (magnitude, last)\n";
  // The Slice changes nothing but where x has no rows: there ONNX Runtime's ReduceMax keeps the axis as it is.
  return "magnitude = Abs (" + x +
         ")\n"
         "first = Constant <value = int64[1] {0}> ()\none = Constant <value = int64[1] {1}> ()\n"
         "last = Constant <value = int64[1] {-1}> ()\n" +
         most + "largest = Slice (most, first, one, last)\n" + constant_text("tiny", 1e-30f) +
         constant_text("limit", 127) + "range = Max (largest, tiny)\ninverse = Div (limit, range)\nscaled = Mul (" + x +
         ", inverse)\nsteps = Round (scaled)\nunit = Div (range, limit)\n";
}

}  // namespace modelflow::ops
