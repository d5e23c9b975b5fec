// The operator form of quantized models (QuantFormat.QOperator of ONNX Runtime, older exporters): each op becomes the
// DequantizeLinear ... QuantizeLinear form that it stands for, which everything else knows.
#include "modelflow/pass.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

/// Inputs 3 i, 3 i + 1 and 3 i + 2 of the node: value, scale, zero point.
Value& dequantized(Build& build, const Node& node, std::size_t i, std::int64_t axis) {
  return build.op("DequantizeLinear", {node.input(3 * i), node.input(3 * i + 1), node.input(3 * i + 2)},
                  {{"axis", axis}});
}

bool one_number(const Value* value) { return value && value->constant() && value->constant()->elements() == 1; }

Verdict check(const Node& node) {
  if (!one_number(node.input(1))) return no("the scale of the first operand is no constant number");
  for (std::size_t i : {4, 5})
    if (!node.input(i) || !node.input(i)->constant()) return no("scale or zero point of the weights are no constants");
  if (node.input(8) && !node.input(8)->constant()) return no("the bias is no constant");
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

Rule rule(const char* name, const char* op, const char* doc) {
  using namespace pattern;
  return {.name = name, .doc = doc, .from = open(pattern::op(op, {any("x")})), .when = {}, .into = convert};
}

}  // namespace

Pass normalize_qoperator() {
  return rewrite(
      "normalize-qoperator", "QLinearConv and QLinearMatMul -> DequantizeLinear, op, QuantizeLinear",
      {rule("qlinear-conv", "QLinearConv", "QLinearConv -> DequantizeLinear x3, Conv, QuantizeLinear"),
       rule("qlinear-matmul", "QLinearMatMul", "QLinearMatMul -> DequantizeLinear x2, MatMul, QuantizeLinear")});
}

}  // namespace modelflow::passes
