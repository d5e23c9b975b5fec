// The fused ops MatMulBf16 and MatMulToBf16: MatMul with weights in bfloat16.
#include <optional>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/bf16_body.h"
#include "backends/ops/matmul_bf16_attrs.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/work.h"

namespace modelflow::ops {

MatMulBf16Attrs::MatMulBf16Attrs(const CallAttrs& attrs) {
  const MatMulAttrs matmul(attrs);
  if (matmul.trans_a || matmul.scale != 1 || matmul.row_bias)
    throw Error(ErrorKind::invalid_input, "MatMulBf16 has neither trans_a nor scale nor a bias of rows");
  trans_b = matmul.trans_b;
  has_bias = matmul.has_bias;
  residual = matmul.residual;
  round_a = attrs.flag("round_a");
}

namespace {

std::vector<std::string> roles(const Call& call) { return matmul_op.inputs(call); }

std::vector<std::string> inputs(const Call& call) {
  const MatMulBf16Attrs matmul(call);
  std::vector<std::string> names = {matmul.round_a ? "a_full" : "a", "b_short"};
  if (matmul.has_bias) names.emplace_back("bias");
  if (matmul.has_residual()) names.emplace_back("residual");
  return names;
}

// The body of MatMul behind the casts.
std::string body(const Call& call, int opset) {
  const std::string rounded =
      MatMulBf16Attrs(call).round_a ? "a_short = Cast <to = 16> (a_full)\na = Cast <to = 1> (a_short)\n" : "";
  return body_behind(rounded + "b = Cast <to = 1> (b_short)\n", matmul_op, call, opset);
}

std::vector<std::string> attributes(const Call& call, int opset) { return activation_attributes(call, opset); }

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<MatMulBf16Attrs> read = read_attrs<MatMulBf16Attrs>(call, why);
  if (!read) return why;
  const Shape& b = call.in(1).shape;
  if (!b.has_rank() || b.rank() != 2) return no("is not of rank 2", call.in(1).name);
  Call product = call;
  product.inputs[0].dtype = product.inputs[1].dtype = DType::f32;
  if (Verdict v = matmul_op.infer(product); !v) return v;
  call.outputs = product.outputs;
  call.outputs[0].dtype = call.op == "MatMulToBf16" ? DType::bf16 : DType::f32;
  return yes();
}

struct Sample {
  Dims a;
  std::int64_t n;
  Attrs attrs = {};
};

// Decode steps of language models first, then every option once on something small.
std::vector<Sample> layers() {
  const auto flag = [](const char* name) { return Attrs{{name, std::int64_t{1}}}; };
  const Attrs before = {{"residual", "before"}}, after = {{"residual", "after"}}, times = {{"residual", "times"}};
  const Attrs gelu = with(flag("has_bias"), activation_sample("Gelu"));
  return {
      {{1, 1, 768}, 3072, gelu},
      {{1, 8, 768}, 768, with(flag("has_bias"), before)},
      {{1, 1, 300}, 1000, flag("trans_b")},
      {{1, 40, 128}, 513, with(gelu, flag("round_a"))},
      {{3, 5, 33}, 17, with(with(activation_sample("SiLU"), after), flag("trans_b"))},
      {{7, 65}, 31, with(flag("round_a"), before)},
      {{1, 1}, 45},
      {{3, 41}, 33},
      {{6, 40}, 64, flag("has_bias")},
      {{12, 40}, 45, flag("has_bias")},
      {{0, 7, 64}, 48, flag("has_bias")},
      {{1, 150, 32}, 130, with(flag("has_bias"), activation_sample("Relu"))},
      {{2, 9, 64}, 45, with(with(activation_sample("SiLU"), times), flag("round_a"))},
      {{3, 64}, 70, with(times, flag("trans_b"))},
      {{5, 20}, 37, with(activation_sample("HardSwish"), {{"post_scale", 1.5f}, {"post_shift", -0.25f}})},
  };
}

Attrs defaults() {
  return with_activation({{"trans_b", std::int64_t{0}},
                          {"round_a", std::int64_t{0}},
                          {"has_bias", std::int64_t{0}},
                          {"residual", std::string("none")}});
}

Call call_of(Samples& made, const Sample& sample) {
  Call call{"MatMulBf16", with(defaults(), sample.attrs), {}, {}};
  const MatMulBf16Attrs matmul(call);
  const std::int64_t k = sample.a.back();
  Dims y = sample.a;
  y.back() = sample.n;
  const Dims dims = matmul.trans_b ? Dims{sample.n, k} : Dims{k, sample.n};
  const Tensor& b = made.weights.emplace_back(to_bf16(sample_weights(dims, k)));
  call.outputs = {{"y", DType::f32, Shape::of(y)}};
  call.inputs = {made.operand("a", sample.a), {"b", DType::bf16, Shape::of(dims), &b}};
  if (matmul.has_bias) call.inputs.push_back(made.operand("bias", {sample.n}, 9));
  if (matmul.has_residual()) call.inputs.push_back(made.operand("residual", y));
  return call;
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    for (const Sample& sample : layers()) all.calls.push_back(call_of(all, sample));
    for (const Sample& sample : layers()) {  // a in bfloat16
      all.calls.push_back(call_of(all, sample));
      all.calls.back().inputs[0].dtype = DType::bf16;
      all.calls.back().attrs.set("round_a", 1);
    }
    return all;
  }();
  return made.calls;
}

/// Where y is read by what rounds it: the same calls with that rounding done.
std::vector<Call> samples_to_bf16() {
  std::vector<Call> calls = samples();
  for (Call& call : calls) {
    call.op = "MatMulToBf16";
    call.attrs.set("round_a", 1);
    call.outputs[0].dtype = DType::bf16;
  }
  return calls;
}

}  // namespace

extern const FusedOp matmul_bf16_op = {
    .kind = "MatMulBf16",
    .doc =
        "Matrix product by weights in bfloat16, of activations as they are or rounded to it, summed in float32; bias, "
        "residual, activation. a is bfloat16 or float32.",
    .names = 0,
    .min_inputs = 2,
    .max_inputs = 4,
    .input_types = {DType::undefined, DType::bf16, DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = defaults(),
    .family = Family::product,
    .base = "MatMul",
    .form = Form::bf16,
    .roles = roles,
    .weights = "b",
    .flops = product_flops,
};

extern const FusedOp matmul_to_bf16_op = {
    .kind = "MatMulToBf16",
    .doc = "MatMulBf16 with its result in bfloat16.",
    .names = 2,
    .min_inputs = 2,
    .max_inputs = 4,
    .input_types = {DType::undefined, DType::bf16, DType::f32},
    .body = [](const Call& call, int opset) { return rounding_result(body(call, opset)); },
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples_to_bf16,
    .defaults = defaults(),
    .output_type = DType::bf16,
    .family = Family::product,
    .base = "MatMul",
    .form = Form::bf16_result,
    .roles = roles,
    .weights = "b",
    .flops = product_flops,
};

}  // namespace modelflow::ops
