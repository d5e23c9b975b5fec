// The fused op MatMulNBits: matrix product with weights of 4 or 8 bits in blocks, and activations as they are.
#include <optional>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/blocked_product.h"
#include "backends/ops/matmul_nbits_attrs.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/work.h"

namespace modelflow::ops {

MatMulNBitsAttrs::MatMulNBitsAttrs(const CallAttrs& attrs)
    : bits(attrs.integer("bits")), block(attrs.integer("block")) {
  const MatMulAttrs matmul(attrs);
  if (matmul.trans_a || matmul.trans_b || matmul.scale != 1 || matmul.row_bias)
    throw Error(ErrorKind::invalid_input, "MatMulNBits has neither trans_a nor trans_b nor scale nor a bias of rows");
  if (bits != 4 && bits != 8)
    throw Error(ErrorKind::invalid_input, "bits is " + std::to_string(bits) + ", neither 4 nor 8");
  if (block < 32 || block > 256 || (block & (block - 1)) != 0)
    throw Error(ErrorKind::invalid_input, "block is " + std::to_string(block) + ", not a power of two from 32 to 256");
  has_bias = matmul.has_bias;
  residual = matmul.residual;
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  const MatMulNBitsAttrs matmul(call);
  std::vector<std::string> names = {"a", "b", "b_scale"};
  if (matmul.has_bias) names.emplace_back("bias");
  if (matmul.has_residual()) names.emplace_back("residual");
  return names;
}

std::string body(const Call& call, int opset) {
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "MatMulNBits needs opset 13, the model has " + std::to_string(opset));
  const MatMulNBitsAttrs matmul(call);
  const std::string y = has_epilogue(call) ? "product" : "y";
  return "{\ntwo = Constant <value = int64[1] {2}> ()\n" +
         (matmul.bits == 4 ? four_bits_text() : "b_steps = Cast <to = 1> (b)\n") +
         constant_text("zero", matmul.middle()) + blocked_weights_text() + y + " = MatMul (a, w)\n" +
         epilogue_body(call, opset, y) + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) { return activation_attributes(call, opset); }

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<MatMulNBitsAttrs> read = read_attrs<MatMulNBitsAttrs>(call, why);
  return read ? infer_blocked_product(call, read->block, read->bytes(), read->bias_index()) : why;
}

struct Sample {
  Dims a;
  std::int64_t n;
  Attrs attrs = {};
};

/// Every option once: one row and few, as models of language decode, and more rows than a tile has.
std::vector<Sample> layers() {
  const Attrs bias = {{"has_bias", std::int64_t{1}}}, wide = {{"bits", std::int64_t{8}}};
  const Attrs before = {{"residual", "before"}}, after = {{"residual", "after"}}, times = {{"residual", "times"}};
  const auto block = [](std::int64_t size) { return Attrs{{"block", size}}; };
  return {
      {{1, 1, 768}, 1000, with(bias, activation_sample("Gelu"))},
      {{1, 1, 768}, 1000, with(wide, before)},
      {{1, 32, 384}, 99, with(bias, before)},
      {{2, 2, 96}, 50, with(bias, after)},
      {{3, 64}, 17, with(with(activation_sample("SiLU"), before), wide)},
      {{5, 384}, 33, block(128)},
      {{5, 256}, 33, with(block(256), wide)},
      {{2, 9, 64}, 45, with(with(activation_sample("SiLU"), times), block(64))},
      {{2, 70, 64}, 130, with(with(bias, times), wide)},
      {{0, 7, 64}, 48, bias},
      {{1, 150, 32}, 130, with(bias, activation_sample("Relu"))},
  };
}

Call call_of(Samples& made, const Sample& sample) {
  Call call{"MatMulNBits", with(find_fused_op("MatMulNBits")->defaults, sample.attrs), {}, {}};
  const MatMulNBitsAttrs matmul(call);
  const std::int64_t k = sample.a.back(), blocks = k / matmul.block;
  Dims y = sample.a;
  y.back() = sample.n;
  const auto constant = [&](const char* name, Tensor tensor) {
    return constant_operand(name, made.weights.emplace_back(std::move(tensor)));
  };
  // Products of every depth end near one: this is about the mean square of the steps.
  const std::int64_t square = matmul.bits == 4 ? 20 : 5400;
  call.outputs = {{"y", DType::f32, Shape::of(y)}};
  call.inputs.push_back(made.operand("a", sample.a));
  call.inputs.push_back(constant("b", sample_bytes({sample.n, blocks, matmul.bytes()})));
  call.inputs.push_back(constant("b_scale", sample_weights({sample.n, blocks}, square * k)));
  if (matmul.has_bias) call.inputs.push_back(made.operand("bias", {sample.n}, 9));
  if (matmul.has_residual()) call.inputs.push_back(made.operand("residual", y));
  return call;
}

}  // namespace

std::vector<Call> matmul_nbits_samples() {
  static const Samples made = [] {
    Samples samples;
    for (const Sample& sample : layers()) samples.calls.push_back(call_of(samples, sample));
    return samples;
  }();
  return made.calls;
}

extern const FusedOp matmul_nbits_op = {
    .kind = "MatMulNBits",
    .doc =
        "Matrix product by weights in 4 or 8 bits with a scale per block, which become floats; bias, residual, "
        "activation.",
    .names = 0,
    .min_inputs = 3,
    .max_inputs = 5,
    .input_types = {DType::f32, DType::u8, DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = matmul_nbits_samples,
    .defaults = with_activation({{"bits", std::int64_t{4}},
                                 {"block", std::int64_t{32}},
                                 {"has_bias", std::int64_t{0}},
                                 {"residual", std::string("none")}}),
    .family = Family::product,
    .base = "MatMul",
    .form = Form::weight_only,
    .weights = "b",
    .flops = product_flops,
};

}  // namespace modelflow::ops
