// The fused ops ConvBf16 and ConvToBf16: Conv of bfloat16 numbers.
#include <string>

#include "backends/ops/bf16_body.h"
#include "backends/ops/conv_attrs.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/work.h"
#include "src/core/bf16.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> roles(const Call& call) { return conv_op.inputs(call); }

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names = conv_op.inputs(call);
  names[0] = "x_full", names[1] = "w_short";
  if (names.back() == "residual") names.back() = "residual_any";
  return names;
}

// The body of Conv behind the casts: its x and w are bfloat16 numbers in float32.
std::string body(const Call& call, int opset) {
  const std::string residual = inputs(call).back() == "residual_any" ? widening("residual", "residual_any") : "";
  const std::string casts = "x_short = Cast <to = 16> (x_full)\n" + widening("x", "x_short") + widening("w", "w_short");
  return body_behind(casts + residual, conv_op, call, opset);
}

std::vector<std::string> attributes(const Call& call, int opset) { return conv_op.attributes(call, opset); }

template <DType Result>
Verdict infer(Call& call) {
  if (Verdict v = conv_op.infer(call); !v) return v;
  call.outputs[0].dtype = Result;
  return yes();
}

/// Those of Conv whose filters sum over more than one channel: the others are no products that bfloat16 is for. What
/// writes bfloat16 mostly reads it too; small layers come with either type.
template <DType Result>
Samples make_samples() {
  Samples made;
  for (Call call : conv_samples()) {
    Operand& w = call.inputs[1];
    if (w.constant->dims()[1] == 1 || ConvAttrs(call).has_slopes || ConvAttrs(call).has_pre) continue;
    const bool small = w.constant->elements() < 20'000;
    call.op = Result == DType::bf16 ? "ConvToBf16" : "ConvBf16";
    w.constant = &made.weights.emplace_back(to_bf16(*w.constant));
    w.dtype = DType::bf16;
    call.outputs[0].dtype = Result;
    if (Result == DType::f32 || small) made.calls.push_back(call);
    call.inputs[0].dtype = DType::bf16;
    if (ConvAttrs(call).residual != Residual::none) call.inputs.back().dtype = DType::bf16;
    if (Result == DType::bf16 || small) made.calls.push_back(std::move(call));
  }
  return made;
}

template <DType Result>
std::vector<Call> samples() {
  static const Samples made = make_samples<Result>();
  return made.calls;
}

}  // namespace

extern const FusedOp conv_bf16_op = {
    .kind = "ConvBf16",
    .doc =
        "Convolution of activations rounded to bfloat16 by weights in it, summed in float32; bias, residual, "
        "activation. x and the residual are bfloat16 or float32.",
    .names = 0,
    .min_inputs = 2,
    .max_inputs = 4,
    .input_types = {DType::undefined, DType::bf16, DType::undefined},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer<DType::f32>,
    .samples = samples<DType::f32>,
    .defaults = conv_defaults(),
    .family = Family::convolution,
    .base = "Conv",
    .form = Form::bf16,
    .layouts = {"x_layout", "y_layout"},
    .roles = roles,
    .weights = "w",
    .flops = conv_flops,
};

extern const FusedOp conv_to_bf16_op = {
    .kind = "ConvToBf16",
    .doc = "ConvBf16 with its result in bfloat16.",
    .names = 3,
    .min_inputs = 2,
    .max_inputs = 4,
    .input_types = {DType::undefined, DType::bf16, DType::undefined},
    .body = [](const Call& call, int opset) { return rounding_result(body(call, opset)); },
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer<DType::bf16>,
    .samples = samples<DType::bf16>,
    .defaults = conv_defaults(),
    .output_type = DType::bf16,
    .family = Family::convolution,
    .base = "Conv",
    .form = Form::bf16_result,
    .layouts = {"x_layout", "y_layout"},
    .roles = roles,
    .weights = "w",
    .flops = conv_flops,
};

}  // namespace modelflow::ops
