// The operator form of quantized models (QuantFormat.QOperator of ONNX Runtime, older exporters): each op becomes the
// DequantizeLinear ... QuantizeLinear form that it stands for, which everything else knows; and the dynamic one.
#include <algorithm>
#include <cmath>

#include "modelflow/pass.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

/// Inputs 3 i, 3 i + 1 and 3 i + 2 of the node: value, scale, zero point.
Value& dequantized(Build& build, const Node& node, std::size_t i, std::int64_t axis) {
  return build.op("DequantizeLinear", {node.input(3 * i), node.input(3 * i + 1), node.input(3 * i + 2)},
                  {{"axis", axis}});
}

bool one_number(const Value* value) { return value && value->constant() && value->constant()->elements() == 1; }

/// x_scale * w_scale, in which the steps of the bias are counted, keeps its digits.
bool normal_scales(const Node& node) {
  const float x = node.input(1)->constant()->as<float>()[0];
  return std::ranges::all_of(node.input(4)->constant()->as<float>(), [x](float w) { return std::isnormal(x * w); });
}

Verdict check(const Node& node) {
  for (std::size_t i = 0; i < 8; ++i)
    if (!node.input(i)) return no("an operand is missing");
  if (!one_number(node.input(1))) return no("the scale of the first operand is no constant number");
  for (std::size_t i : {2, 6, 7})
    if (rank_of(node.input(i)) != 0 && !one_number(node.input(i)))
      return no("is no single number", node.input(i)->name());
  for (std::size_t i : {4, 5})
    if (!node.input(i)->constant() || node.input(i)->constant()->elements() != node.input(4)->constant()->elements())
      return no("scale or zero point of the weights are no constants, or of unlike extents");
  if (!one_number(node.input(4)) &&
      (rank_of(node.input(4)) != 1 || (node.is("QLinearMatMul") && rank_of(node.input(3)) != 2)))
    return no("the scales of the weights do not lie along their columns", node.input(4)->name());
  for (std::size_t i : {1, 4})
    if (node.input(i)->dtype() != DType::f32) return no("a scale is not float32", node.input(i)->name());
  if (node.input(8) && !node.input(8)->constant()) return no("the bias is no constant");
  if (node.input(8) && !normal_scales(node)) return no("the scales of the bias are no normal numbers");
  return yes();
}

/// The bias has the scale x_scale * w_scale.
Value& bias_of(Build& build, const Node& node) {
  const float x = node.input(1)->constant()->as<float>()[0];
  const Tensor& w = *node.input(4)->constant();
  const Tensor scales = Tensor::make(DType::f32, w.dims(), [&](std::byte* bytes) {
    for (std::size_t i = 0; i < w.as<float>().size(); ++i) reinterpret_cast<float*>(bytes)[i] = x * w.as<float>()[i];
  });
  return build.op("DequantizeLinear", {node.input(8), &build.constant(scales, "bias_scale")}, {{"axis", 0}});
}

std::vector<Value*> convert(const Match& match, Build& build) {
  const Node& node = match.root();
  if (Verdict verdict = check(node); !verdict) return build.refuse(verdict);
  if (build.opset() < 13) return build.refuse(no("scales per channel need opset 13"));
  const bool conv = node.is("QLinearConv");
  Value& x = dequantized(build, node, 0, 1);
  Value& w = dequantized(build, node, 1, conv ? 0 : 1);
  std::vector<Value*> inputs = {&x, &w};
  if (node.input(8)) inputs.push_back(&bias_of(build, node));
  Value& y = build.op(conv ? "Conv" : "MatMul", inputs, node.attrs);
  return {&build.op("QuantizeLinear", {&y, node.input(6), node.input(7)})};
}

/// Whether the three are what one DynamicQuantizeLinear gives.
bool steps_of_one(const Value& steps, const Value& scale, const Value& zero_point) {
  const Node* node = steps.producer();
  return node && node->is("DynamicQuantizeLinear") && node->output(0) == &steps && node->output(1) == &scale &&
         node->output(2) == &zero_point;
}

std::vector<Value*> convert_dynamic(const Match& match, Build& build) {
  Value &a = match.value("a"), &scale = match.value("a_scale"), &zero = match.value("a_zero"), &b = match.value("b");
  if (!steps_of_one(a, scale, zero)) return build.refuse(no("no DynamicQuantizeLinear", a.name()));
  if (match.node("cast").attrs.integer("to") != static_cast<std::int64_t>(DType::f32))
    return build.refuse(no("the sums are not cast to float32"));
  if (b.shape().rank() != 2) return build.refuse(no("is not of rank 2", b.name()));
  const Tensor &scales = match.constant("b_scale"), &all = *b.constant();
  const bool each = scales.dims() == Dims{all.dims()[1]};
  if (!each && (scales.elements() != 1 || scales.rank() > 1))
    return build.refuse(no("is neither a number nor one for each column", match.value("b_scale").name()));
  if (match["b_zero"] && match.constant("b_zero").elements() != scales.elements())
    return build.refuse(no("has other extents than the scales", match.value("b_zero").name()));
  if (build.opset() < 13) return build.refuse(no("scales per channel need opset 13"));
  for (const char* name : {"b_scale", "b_zero"})
    if (const Value* value = match[name]; value && value->constant()->rank() > 1)
      return build.refuse(no("is not of rank 1", value->name()));
  std::vector<Value*> weights = {&b, &match.value("b_scale")};
  if (match["b_zero"]) weights.push_back(match["b_zero"]);
  Value& x = build.op("DequantizeLinear", {&a, &scale, &zero});
  return {&build.op("MatMul", {&x, &build.op("DequantizeLinear", weights, {{"axis", 1}})})};
}

/// What quantize_dynamic of ONNX Runtime and DynamicQuantizeLinear's own documentation make of a product.
Rule dynamic_rule() {
  using namespace pattern;
  const Pattern sums = op("MatMulInteger", {any("a"), constant("b"), any("a_zero"), optional(constant("b_zero"))});
  return {.name = "matmul-integer",
          .doc = "DynamicQuantizeLinear, MatMulInteger, Cast, Mul by the scales -> DequantizeLinear x2, MatMul",
          .from = product({op("Cast", {sums}, "cast"), any("a_scale"), constant("b_scale")}),
          .when = {},
          .into = convert_dynamic};
}

Rule rule(const char* name, const char* op, const char* doc) {
  using namespace pattern;
  return {.name = name, .doc = doc, .from = open(pattern::op(op, {any("x")})), .when = {}, .into = convert};
}

}  // namespace

Pass normalize_qoperator() {
  return rewrite(
      "normalize-qoperator", "QLinearConv, QLinearMatMul, MatMulInteger -> DequantizeLinear, op, QuantizeLinear",
      {rule("qlinear-conv", "QLinearConv", "QLinearConv -> DequantizeLinear x3, Conv, QuantizeLinear"),
       rule("qlinear-matmul", "QLinearMatMul", "QLinearMatMul -> DequantizeLinear x2, MatMul, QuantizeLinear"),
       dynamic_rule()});
}

}  // namespace modelflow::passes
