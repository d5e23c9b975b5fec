// The fused op MatMul: matrix product with scale, bias, activation and residual.
#include <optional>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/broadcast.h"
#include "backends/ops/matmul_attrs.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/work.h"

namespace modelflow::ops {

MatMulAttrs::MatMulAttrs(const CallAttrs& attrs)
    : trans_a(attrs.flag("trans_a")),
      trans_b(attrs.flag("trans_b")),
      has_bias(attrs.flag("has_bias")),
      row_bias(has_bias && attrs.flag("row_bias")),
      scale(attrs.number("scale")),
      residual(residual_of(attrs)) {}

bool has_epilogue(const CallAttrs& attrs) {
  const MatMulAttrs matmul(attrs);
  return matmul.has_bias || matmul.residual != Residual::none || attrs.text("activation") != "None";
}

std::string epilogue_body(const CallAttrs& attrs, int opset, std::string at) {
  const MatMulAttrs matmul(attrs);
  const bool active = attrs.text("activation") != "None";
  int left = matmul.has_bias + (matmul.residual != Residual::none) + active;
  std::string text;
  const auto next = [&](std::string_view stem) { return --left == 0 ? std::string("y") : std::string(stem); };
  const auto node = [&](std::string_view stem, const std::string& call_text) {
    const std::string name = next(stem);
    text += name + " = " + call_text + "\n";
    at = name;
  };
  if (matmul.has_bias) node("biased", "Add (" + at + ", bias)");
  // Sum, not Add: ONNX Runtime would make SkipLayerNormalization of an Add and the norm behind it, and its kernel for
  // that is slower than the two (BERT-base as a whole by a tenth).
  if (matmul.residual == Residual::before) node("sum", "Sum (" + at + ", residual)");
  if (active) {
    const std::string name = next("act");
    text += activation_body(attrs, opset, at, name);
    at = name;
  }
  if (matmul.residual == Residual::after) node("sum", "Sum (" + at + ", residual)");
  if (matmul.residual == Residual::times) node("gated", "Mul (" + at + ", residual)");
  return text;
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  const MatMulAttrs matmul(call);
  std::vector<std::string> names = {"a", "b"};
  if (matmul.has_bias) names.emplace_back("bias");
  if (matmul.residual != Residual::none) names.emplace_back("residual");
  return names;
}

// Swaps the last two axes; the rank decides the perm.
std::string swapped(std::string_view name, const Operand& operand) {
  const std::size_t rank = operand.shape.rank();
  std::string perm;
  for (std::size_t i = 0; i + 2 < rank; ++i) perm += std::to_string(i) + ", ";
  perm += std::to_string(rank - 1) + ", " + std::to_string(rank - 2);
  return std::string(name) + "_swapped = Transpose <perm = [" + perm + "]> (" + std::string(name) + ")\n";
}

/// Whether `a` is one matrix of weights for a batch that may be empty. They took the place of weights on the right,
/// which every batch has; ONNX Runtime repeats no operand for an empty one.
bool repeats_weights(const Call& call, int opset) {
  const Shape &a = call.in(0).shape, &b = call.in(1).shape;
  if (!CallAttrs(call).flag("row_bias") || opset < 10 || !a.has_rank() || a.rank() != 2 || !b.has_rank()) return false;
  for (std::size_t i = 0; i + 2 < b.rank(); ++i)
    if (b[i].number().value_or(0) == 0) return true;
  return false;
}

/// a_wide: `a` as often as `b` has matrices.
std::string repeated_text(const std::string& a) {
  return "b_shape = Shape (b)\nfront = Constant <value = int64[1] {0}> ()\nrows = Constant <value = int64[1] {-2}> ()\n"
         "batch = Slice (b_shape, front, rows)\nmatrix = Constant <value = int64[2] {1, 1}> ()\n"
         "wide = Concat <axis = 0> (batch, matrix)\na_wide = Expand (" +
         a + ", wide)\n";
}

std::string body(const Call& call, int opset) {
  const MatMulAttrs matmul(call);
  std::string text = "{\n", a = matmul.trans_a ? "a_swapped" : "a";
  if (matmul.trans_a) text += swapped("a", call.in(0));
  if (repeats_weights(call, opset)) {
    text += repeated_text(a);
    a = "a_wide";
  }
  if (matmul.trans_b) text += swapped("b", call.in(1));
  const bool more = has_epilogue(call), scaled = matmul.scale != 1;
  std::string at = scaled || more ? "product" : "y";
  text += at + " = MatMul (" + a + ", " + (matmul.trans_b ? "b_swapped" : "b") + ")\n";
  if (scaled) {
    text += opset < 12 ? constant_text("factor", matmul.scale) : "factor = Constant <value_float: float = @scale> ()\n";
    at = more ? "scaled" : "y";
    text += at + " = Mul (product, factor)\n";
  }
  return text + epilogue_body(call, opset, at) + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names;
  if (MatMulAttrs(call).scale != 1 && opset >= 12) names.emplace_back("scale");
  for (std::string& name : activation_attributes(call, opset)) names.push_back(std::move(name));
  return names;
}

Verdict batch_dims(const Call& call, std::vector<Dim>& y) {
  const std::vector<Dim>&a = call.in(0).shape.dims(), &b = call.in(1).shape.dims();
  const std::size_t rank = std::max(a.size(), b.size());
  const auto at = [rank](const std::vector<Dim>& dims, std::size_t i) {
    return i + dims.size() < rank ? Dim(1) : dims[i + dims.size() - rank];
  };
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const std::optional<Dim> dim = broadcast(at(a, i), at(b, i));
    if (!dim)
      return no("batch dims " + at(a, i).str() + " and " + at(b, i).str() + " do not broadcast", call.in(1).name);
    y.push_back(*dim);
  }
  return yes();
}

/// [n], or [m, 1] where it is one of rows.
Verdict check_bias(const Operand& bias, bool of_rows, const std::vector<Dim>& y) {
  const Shape& shape = bias.shape;
  const Dim& wanted = of_rows ? y[y.size() - 2] : y.back();
  if (shape.rank() != (of_rows ? 2 : 1) || (of_rows && shape[1].known() && !(shape[1] == Dim(1))))
    return no(of_rows ? "bias is not [m, 1]" : "bias is not of rank 1", bias.name);
  if (!shape[0].known() || !wanted.known() || shape[0] == wanted) return yes();
  const std::string what = of_rows ? " rows" : " columns";
  return no("bias has " + shape[0].str() + " entries, the result " + wanted.str() + what, bias.name);
}

Verdict check_extra(const Call& call, const MatMulAttrs& matmul, std::vector<Dim>& y) {
  if (matmul.has_bias && call.in(2).shape.has_rank()) {
    if (Verdict v = check_bias(call.in(2), matmul.row_bias, y); !v) return v;
  }
  if (matmul.residual == Residual::none) return yes();
  const Operand& residual = call.in(matmul.residual_index());
  if (!residual.shape.has_rank()) return yes();
  if (residual.shape.rank() != y.size()) return no("residual differs in rank from the result", residual.name);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Dim& dim = residual.shape[i];
    if (dim.known() && y[i].known() && !(dim == y[i])) {
      return no("residual is " + residual.shape.str() + ", the result " + Shape(y).str(), residual.name);
    }
    if (y[i].unknown()) y[i] = dim;
  }
  return yes();
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<MatMulAttrs> read = read_attrs<MatMulAttrs>(call, why);
  if (!read) return why;
  if (Verdict v = check_activation(call); !v) return v;
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  for (std::size_t i = 0; i < 2; ++i) {
    const Operand& operand = call.in(i);
    // The body swaps axes by number, so it needs the rank.
    if (!operand.shape.has_rank())
      return (i ? read->trans_b : read->trans_a) ? no("rank unknown", operand.name) : yes();
    if (operand.shape.rank() < 2) return no("rank below 2", operand.name);
  }
  const std::vector<Dim>&a = call.in(0).shape.dims(), &b = call.in(1).shape.dims();
  const Dim &k = a[a.size() - 1 - read->trans_a], &inner = b[b.size() - 2 + read->trans_b];
  if (k.known() && inner.known() && !(k == inner)) {
    return no("inner dims " + k.str() + " and " + inner.str() + " differ", call.in(1).name);
  }
  std::vector<Dim> y;
  if (Verdict v = batch_dims(call, y); !v) return v;
  y.push_back(a[a.size() - 2 + read->trans_a]);
  y.push_back(b[b.size() - 1 - read->trans_b]);
  if (Verdict v = check_extra(call, *read, y); !v) return v;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

}  // namespace

extern const FusedOp matmul_op = {
    .kind = "MatMul",
    .doc =
        "Matrix product with batch broadcasting, scale, bias of columns or rows, activation and residual sum or "
        "factor.",
    .names = 6,
    .min_inputs = 2,
    .max_inputs = 4,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = matmul_samples,
    .defaults = with_activation({{"trans_a", std::int64_t{0}},
                                 {"trans_b", std::int64_t{0}},
                                 {"has_bias", std::int64_t{0}},
                                 {"row_bias", std::int64_t{0}},
                                 {"scale", 1.0f},
                                 {"residual", std::string("none")}}),
    .family = Family::product,
    .weights = "b",
    .flops = product_flops,
};

}  // namespace modelflow::ops
