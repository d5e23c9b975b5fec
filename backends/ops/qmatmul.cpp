// The fused op QMatMul: matrix product in int8, whose first operand is quantized on the way in.
#include <cmath>
#include <optional>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/qmatmul_attrs.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/row_steps.h"
#include "backends/ops/work.h"

namespace modelflow::ops {

QMatMulAttrs::QMatMulAttrs(const CallAttrs& attrs) {
  const MatMulAttrs matmul(attrs);
  if (matmul.trans_a || matmul.scale != 1 || matmul.row_bias)
    throw Error(ErrorKind::invalid_input, "QMatMul has no trans_a, no scale and no bias of rows");
  trans_b = matmul.trans_b;
  has_bias = matmul.has_bias;
  has_zero_point = attrs.flag("has_zero_point");
  residual = matmul.residual;
  a_scale = attrs.number("a_scale");
  if (!(a_scale >= 0) || std::isinf(a_scale)) throw Error(ErrorKind::invalid_input, "a_scale is no scale");
  const std::int64_t zero = attrs.integer("a_zero_point");
  if (zero < 0 || zero > 255) throw Error(ErrorKind::invalid_input, "a_zero_point is not in 0..255");
  a_zero_point = static_cast<std::int32_t>(zero);
  per_tensor = attrs.flag("a_per_tensor");
  if (per_tensor && a_scale != 0) throw Error(ErrorKind::invalid_input, "a_per_tensor is for an a_scale of 0");
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  const QMatMulAttrs matmul(call);
  std::vector<std::string> names = {"a", "b", "b_scale"};
  if (matmul.has_zero_point) names.emplace_back("b_zero_point");
  if (matmul.has_bias) names.emplace_back("bias");
  if (matmul.has_residual()) names.emplace_back("residual");
  return names;
}

// One scale for all of a, known beforehand.
std::string static_product(const QMatMulAttrs& matmul, int opset, const std::string& b, const std::string& y) {
  const std::string unit =
      opset < 12 ? constant_text("unit", matmul.a_scale) : "unit = Constant <value_float: float = @a_scale> ()\n";
  const std::string zero =
      opset < 12 ? "zero = Constant <value = uint8 {" + std::to_string(matmul.a_zero_point) + "}> ()\n"
                 : "zero_number = Constant <value_int: int = @a_zero_point> ()\nzero = Cast <to = 2> (zero_number)\n";
  return unit + zero + "steps = QuantizeLinear (a, unit, zero)\ntotal = MatMulInteger (steps, " + b +
         ")\ntotal_float = Cast <to = 1> (total)\nunits = Mul (b_scale, unit)\n" + y + " = Mul (total_float, units)\n";
}

// One scale for all of a, from its range; as ONNX Runtime's quantize_dynamic writes it.
std::string tensor_product(const std::string& b, const std::string& y) {
  return "steps, unit, zero = DynamicQuantizeLinear (a)\ntotal = MatMulInteger (steps, " + b +
         ")\ntotal_float = Cast <to = 1> (total)\nunits = Mul (unit, b_scale)\n" + y + " = Mul (total_float, units)\n";
}

// MatMulInteger wants its steps unsigned to be fast.
std::string row_product(int opset, const std::string& b, const std::string& y) {
  return row_steps_text(opset, "a") + constant_text("offset", 128) + "zero = Constant <value = uint8 {128}> ()\n" +
         "shifted = Add (steps, offset)\nbytes = Cast <to = 2> (shifted)\ntotal = MatMulInteger (bytes, " + b +
         ")\ntotal_float = Cast <to = 1> (total)\nby_row = Mul (total_float, unit)\n" + y +
         " = Mul (by_row, b_scale)\n";
}

std::string body(const Call& call, int opset) {
  if (opset < 11) throw Error(ErrorKind::unsupported, "QMatMul needs opset 11, the model has " + std::to_string(opset));
  const QMatMulAttrs matmul(call);
  const std::string columns = matmul.trans_b ? "b_swapped" : "b";
  const std::string b = columns + ", zero" + (matmul.has_zero_point ? ", b_zero" : ""),
                    y = has_epilogue(call) ? "product" : "y";
  return std::string("{\n") + (matmul.trans_b ? "b_swapped = Transpose <perm = [1, 0]> (b)\n" : "") +
         (matmul.has_zero_point ? "b_zero = Cast <to = 3> (b_zero_point)\n" : "") +
         (matmul.per_tensor ? tensor_product(b, y)
          : matmul.by_row() ? row_product(opset, b, y)
                            : static_product(matmul, opset, b, y)) +
         epilogue_body(call, opset, y) + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names;
  if (QMatMulAttrs(call).a_scale != 0 && opset >= 12) names = {"a_scale", "a_zero_point"};
  for (std::string& name : activation_attributes(call, opset)) names.push_back(std::move(name));
  return names;
}

Verdict check_columns(const Operand& operand, const Dim& n, const std::string& what) {
  if (!operand.shape.has_rank()) return yes();
  if (operand.shape.rank() != 1) return no("is not of rank 1", operand.name);
  const Dim& count = operand.shape[0];
  if (count.known() && n.known() && !(count == n))
    return no("there are " + count.str() + " " + what + " for " + n.str() + " columns", operand.name);
  return yes();
}

Verdict check_b(const Call& call, const QMatMulAttrs& matmul) {
  const Operand &b = call.in(1), &scale = call.in(2);
  if (!b.shape.has_rank()) return yes();
  if (b.shape.rank() != 2) return no("is not of rank 2", b.name);
  const Dim &n = b.shape[1 - matmul.trans_b], &k = b.shape[matmul.trans_b];
  if (k.known() && k.value() == 0) return no("has no rows", b.name);
  if (Verdict v = check_columns(scale, n, "scales"); !v || !matmul.has_zero_point) return v;
  return check_columns(call.in(3), n, "zero points");
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<QMatMulAttrs> read = read_attrs<QMatMulAttrs>(call, why);
  if (!read) return why;
  if (call.inputs.size() != read->inputs())
    return no("the attributes ask for " + std::to_string(read->inputs()) + " inputs");
  if (Verdict v = check_b(call, *read); !v) return v;
  // For the rest it is a MatMul.
  Call product = call;
  product.inputs.erase(product.inputs.begin() + 2, product.inputs.begin() + (read->has_zero_point ? 4 : 3));
  if (Verdict v = matmul_op.infer(product); !v) return v;
  call.outputs = product.outputs;
  return yes();
}

}  // namespace

extern const FusedOp qmatmul_op = {
    .kind = "QMatMul",
    .doc = "Matrix product in int8: rows of a quantized on the way in, weights per column; bias, residual, activation.",
    .names = 0,
    .min_inputs = 3,
    .max_inputs = 6,
    .input_types = {DType::f32, DType::i8, DType::f32},
    .single = {2},  // b_scale, behind which zero points of 8 bits may come
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = qmatmul_samples,
    .defaults = with_activation({{"trans_b", std::int64_t{0}},
                                 {"has_zero_point", std::int64_t{0}},
                                 {"has_bias", std::int64_t{0}},
                                 {"residual", std::string("none")},
                                 {"a_scale", 0.0f},
                                 {"a_zero_point", std::int64_t{0}},
                                 {"a_per_tensor", std::int64_t{0}}}),
    .family = Family::product,
    .base = "MatMul",
    .form = Form::i8,
    .weights = "b",
    .flops = product_flops,
};

}  // namespace modelflow::ops
