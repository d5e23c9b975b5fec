#include <list>
#include <optional>
#include <string>

#include "backends/ops.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/conv_attrs.h"
#include "backends/ops/read_attrs.h"
#include "modelflow/bf16.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names = conv_op.inputs(call);
  names[0] = "x_full", names[1] = "w_short";
  return names;
}

// The body of Conv behind the casts: its x and w are bfloat16 numbers in float32.
std::string body(const Call& call, int opset) {
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "bfloat16 needs the Cast of opset 13, the model has " + std::to_string(opset));
  const std::string open = "{\n";
  return open + "x_short = Cast <to = 16> (x_full)\nx = Cast <to = 1> (x_short)\nw = Cast <to = 1> (w_short)\n" +
         conv_op.body(call, opset).substr(open.size());
}

std::vector<std::string> attributes(const Call& call, int opset) { return conv_op.attributes(call, opset); }

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<ConvAttrs> conv = read_attrs<ConvAttrs>(call, why);
  if (!conv) return why;
  return infer_conv(call, *conv, {.bias = conv->has_bias ? 2u : 0, .residual = conv->residual_index()});
}

/// Those of Conv whose filters sum over more than one channel: the others are no products that bfloat16 is for.
std::vector<Call> samples() {
  static const auto made = [] {
    std::pair<std::vector<Call>, std::list<Tensor>> result;  // the list keeps what the calls point to
    for (Call call : conv_samples()) {
      Operand& w = call.inputs[1];
      if (w.constant->dims()[1] == 1) continue;
      call.op = "ConvBf16";
      w.constant = &result.second.emplace_back(to_bf16(*w.constant));
      w.dtype = DType::bf16;
      result.first.push_back(std::move(call));
    }
    return result;
  }();
  return made.first;
}

}  // namespace

const FusedOp conv_bf16_op = {
    .kind = "ConvBf16",
    .doc =
        "Convolution of activations rounded to bfloat16 by weights in it, summed in float32; bias, residual sum, "
        "activation.",
    .names = 6,
    .min_inputs = 2,
    .max_inputs = 4,
    .input_types = {DType::f32, DType::bf16, DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = conv_defaults(),
};

}  // namespace modelflow::ops
