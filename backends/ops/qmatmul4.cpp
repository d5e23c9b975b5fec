// The fused op QMatMul4: matrix product with weights of 4 bits in blocks.
#include <optional>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/blocked_product.h"
#include "backends/ops/qmatmul4_attrs.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/work.h"

namespace modelflow::ops {

QMatMul4Attrs::QMatMul4Attrs(const CallAttrs& attrs) {
  const MatMulAttrs matmul(attrs);
  if (matmul.trans_a || matmul.trans_b || matmul.scale != 1 || matmul.row_bias)
    throw Error(ErrorKind::invalid_input, "QMatMul4 has neither trans_a nor trans_b nor scale nor a bias of rows");
  has_bias = matmul.has_bias;
  residual = matmul.residual;
  has_zero_point = attrs.flag("has_zero_point");
  const std::int64_t size = attrs.integer("block");
  if (size < 16 || size > 256 || (size & (size - 1)) != 0)
    throw Error(ErrorKind::invalid_input, "block is " + std::to_string(size) + ", not a power of two from 16 to 256");
  block = static_cast<std::size_t>(size);
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  const QMatMul4Attrs matmul(call);
  std::vector<std::string> names = {"a", "b", "b_scale"};
  if (matmul.has_zero_point) names.emplace_back("b_zero_point");
  if (matmul.has_bias) names.emplace_back("bias");
  if (matmul.has_residual()) names.emplace_back("residual");
  return names;
}

// w [K, N] in float32.
std::string weights(const QMatMul4Attrs& matmul) {
  const std::string zero = matmul.has_zero_point ? "zero = Unsqueeze (b_zero_point, two)\n" : constant_text("zero", 8);
  return four_bits_text() + zero + blocked_weights_text();
}

// a, every block of a row in steps of a 127th of its largest element. The product of rounded numbers stands for the one
// of integers: they differ by float rounding alone.
std::string rounded(int opset, std::size_t block) {
  const std::string largest = opset < 18 ? "largest = ReduceMax <axes = [-1], keepdims = 1> (magnitude)\n"
                                         : "largest = ReduceMax <keepdims = 1> (magnitude, last)\n";
  return "first = Constant <value = int64[1] {0}> ()\nlast = Constant <value = int64[1] {-1}> ()\n"
         "block = Constant <value = int64[1] {" +
         std::to_string(block) +
         "}> ()\na_shape = Shape (a)\nrows = Slice (a_shape, first, last)\n"
         "a_form = Concat <axis = 0> (rows, b_blocks, block)\na_blocks = Reshape (a, a_form)\n"
         "magnitude = Abs (a_blocks)\n" +
         largest + constant_text("tiny", 1e-30f) + constant_text("limit", 127) +
         "range = Max (largest, tiny)\ninverse = Div (limit, range)\nscaled = Mul (a_blocks, inverse)\n"
         "steps = Round (scaled)\nunit = Div (range, limit)\nstepped = Mul (steps, unit)\n"
         "a_rounded = Reshape (stepped, a_shape)\n";
}

std::string body(const Call& call, int opset) {
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "QMatMul4 needs opset 13, the model has " + std::to_string(opset));
  const QMatMul4Attrs matmul(call);
  const std::string y = has_epilogue(call) ? "product" : "y";
  return "{\none = Constant <value = int64[1] {1}> ()\ntwo = Constant <value = int64[1] {2}> ()\n"
         "scale_shape = Shape (b_scale)\nb_blocks = Slice (scale_shape, one, two)\n" +
         weights(matmul) + rounded(opset, matmul.block) + y + " = MatMul (a_rounded, w)\n" +
         epilogue_body(call, opset, y) + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) { return activation_attributes(call, opset); }

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<QMatMul4Attrs> read = read_attrs<QMatMul4Attrs>(call, why);
  if (!read) return why;
  const auto block = static_cast<std::int64_t>(read->block);
  return infer_blocked_product(call, block, block / 2, read->bias_index());
}

}  // namespace

extern const FusedOp qmatmul4_op = {
    .kind = "QMatMul4",
    .doc =
        "Matrix product by weights in 4 bits with a scale per block, activations in 8 bits; bias, residual, "
        "activation.",
    .names = 0,
    .min_inputs = 3,
    .max_inputs = 6,
    .input_types = {DType::f32, DType::u8, DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = qmatmul4_samples,
    .defaults = with_activation({{"block", std::int64_t{32}},
                                 {"has_zero_point", std::int64_t{0}},
                                 {"has_bias", std::int64_t{0}},
                                 {"residual", std::string("none")}}),
    .family = Family::product,
    .base = "MatMul",
    .form = Form::i4,
    .weights = "b",
    .flops = product_flops,
};

}  // namespace modelflow::ops
