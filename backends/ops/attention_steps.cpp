#include "backends/ops/attention_steps.h"

#include <limits>

#include "backends/ops/activation_body.h"
#include "backends/ops/row_steps.h"

namespace modelflow::ops {
namespace {

std::string turned(const std::string& y, const std::string& x) {
  return y + " = Transpose <perm = [0, 1, 3, 2]> (" + x + ")\n";
}

}  // namespace

std::string step_scores_text(int opset, const std::string& q, const std::string& k, const std::string& scale) {
  // MatMulInteger wants the steps of its first operand unsigned to be fast.
  return row_steps_text(opset, q, "q_") + row_steps_text(opset, k, "k_") + constant_text("offset", 128) +
         "q_shifted = Add (q_steps, offset)\nq_bytes = Cast <to = 2> (q_shifted)\n"
         "q_zero = Constant <value = uint8 {128}> ()\nk_bytes = Cast <to = 3> (k_steps)\n" +
         turned("k_columns", "k_bytes") + turned("k_units", "k_unit") +
         "products = MatMulInteger (q_bytes, k_columns, q_zero)\nproducts_float = Cast <to = 1> (products)\n"
         "q_units = Mul (q_unit, " +
         scale + ")\nby_row = Mul (products_float, q_units)\nscores = Mul (by_row, k_units)\n";
}

std::string step_weights_text(int opset, const std::string& scores, const std::string& v, bool guard,
                              const std::string& y) {
  const std::string top = opset < 18 ? "top_found = ReduceMax <axes = [-1], keepdims = 1> (" + scores + ")\n"
                                     : "top_found = ReduceMax <keepdims = 1> (" + scores + ", v_last)\n";
  // The Slices change nothing but in an empty batch: see row_steps_text.
  const std::string average = guard ? "average_found = Div (sums_float, total)\nundefined = IsNaN (average_found)\n" +
                                          constant_text("nothing", 0) +
                                          "average = Where (undefined, nothing, average_found)\n"
                                    : "average = Div (sums_float, total)\n";
  return turned("v_turned", v) + row_steps_text(opset, "v_turned", "v_") + "v_bytes = Cast <to = 3> (v_steps)\n" +
         turned("v_columns", "v_bytes") + turned("v_units", "v_unit") + top +
         "top_only = Slice (top_found, v_first, v_one, v_last)\n" +
         constant_text("least", std::numeric_limits<float>::lowest()) + "top = Max (top_only, least)\nbelow = Sub (" +
         scores + ", top)\npowers = Exp (below)\n" + constant_text("p_limit", 255) +
         "p_scaled = Mul (powers, p_limit)\np_steps = Round (p_scaled)\np_bytes = Cast <to = 2> (p_steps)\n"
         "sums = MatMulInteger (p_bytes, v_columns)\nsums_float = Cast <to = 1> (sums)\n"
         "total_found = ReduceSum <keepdims = 1> (p_steps, v_last)\n"
         "total = Slice (total_found, v_first, v_one, v_last)\n" +
         average + y + " = Mul (average, v_units)\n";
}

}  // namespace modelflow::ops
