#include <list>
#include <string>

#include "backends/ops.h"
#include "backends/ops/bf16_body.h"
#include "backends/ops/conv_attrs.h"
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
  return body_behind("x_short = Cast <to = 16> (x_full)\nx = Cast <to = 1> (x_short)\nw = Cast <to = 1> (w_short)\n",
                     conv_op, call, opset);
}

std::vector<std::string> attributes(const Call& call, int opset) { return conv_op.attributes(call, opset); }

Verdict infer(Call& call) { return conv_op.infer(call); }

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
