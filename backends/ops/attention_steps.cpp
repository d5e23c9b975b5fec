// ONNX text of the products of attention in low precision, and of the softmax between them.
#include "backends/ops/attention_steps.h"

#include <limits>

#include "backends/ops/activation_body.h"
#include "backends/ops/row_steps.h"

namespace modelflow::ops {
namespace {

std::string turned(const std::string& y, const std::string& x) {
  return y + " = Transpose <perm = [0, 1, 3, 2]> (" + x + ")\n";
}

std::string rounded(const std::string& y, const std::string& x) {
  return y + "_short = Cast <to = 16> (" + x + ")\n" + y + " = Cast <to = 1> (" + y + "_short)\n";
}

/// `powers` = exp(scores - the largest of their row), in [0, 1]. The Slices change nothing but in an empty batch: see
/// row_steps_text.
std::string powers_text(int opset, const std::string& scores) {
  const std::string top = opset < 18 ? "top_found = ReduceMax <axes = [-1], keepdims = 1> (" + scores + ")\n"
                                     : "top_found = ReduceMax <keepdims = 1> (" + scores + ", v_last)\n";
  return top + "top_only = Slice (top_found, v_first, v_one, v_last)\n" +
         constant_text("least", std::numeric_limits<float>::lowest()) + "top = Max (top_only, least)\nbelow = Sub (" +
         scores + ", top)\npowers = Exp (below)\n";
}

/// `average` = `sums` by the sum of `p_kept`.
std::string average_text(bool guard) {
  const std::string total =
      "total_found = ReduceSum <keepdims = 1> (p_kept, v_last)\n"
      "total = Slice (total_found, v_first, v_one, v_last)\n";
  if (!guard) return total + "average = Div (sums, total)\n";
  return total + constant_text("nothing", 0) +
         "average_found = Div (sums, total)\ndefined = Greater (total, nothing)\n" +
         "average = Where (defined, average_found, nothing)\n";
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
  return turned("v_turned", v) + row_steps_text(opset, "v_turned", "v_") + "v_bytes = Cast <to = 3> (v_steps)\n" +
         turned("v_columns", "v_bytes") + turned("v_units", "v_unit") + powers_text(opset, scores) +
         constant_text("p_limit", 255) +
         "p_scaled = Mul (powers, p_limit)\np_kept = Round (p_scaled)\np_bytes = Cast <to = 2> (p_kept)\n"
         "sums_whole = MatMulInteger (p_bytes, v_columns)\nsums = Cast <to = 1> (sums_whole)\n" +
         average_text(guard) + y + " = Mul (average, v_units)\n";
}

std::string bf16_scores_text(const std::string& q, const std::string& k, const std::string& scale) {
  return "q_scaled = Mul (" + q + ", " + scale + ")\n" + rounded("q_kept", "q_scaled") + rounded("k_kept", k) +
         turned("k_turned", "k_kept") + "scores = MatMul (q_kept, k_turned)\n";
}

std::string bf16_weights_text(int opset, const std::string& scores, const std::string& v, bool guard,
                              const std::string& y) {
  const auto index = [](const char* name, const char* value) {
    return std::string(name) + " = Constant <value = int64[1] {" + value + "}> ()\n";
  };
  return index("v_first", "0") + index("v_one", "1") + index("v_last", "-1") + rounded("v_kept", v) +
         powers_text(opset, scores) + rounded("p_kept", "powers") + "sums = MatMul (p_kept, v_kept)\n" +
         average_text(guard) + y + " = Identity (average)\n";
}

}  // namespace modelflow::ops
