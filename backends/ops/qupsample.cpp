// The fused op QUpsample: Upsample of 8-bit numbers.
#include "backends/ops/upsample.h"

namespace modelflow::ops {
namespace {

// The factors stay an attribute, so that one body serves all of them.
std::string body(const Call& call, int opset) {
  if (opset < 12)
    throw Error(ErrorKind::unsupported, "lists as constants need opset 12, the model has " + std::to_string(opset));
  return upsample_body(call, opset,
                       "ones = Constant <value = float[2] {1, 1}> ()\n"
                       "whole = Constant <value_ints: ints = @factors> ()\nfactors = Cast <to = 1> (whole)\n"
                       "scales = Concat <axis = 0> (ones, factors)\n");
}

std::vector<std::string> attributes(const Call&, int) { return {"factors"}; }

}  // namespace

extern const FusedOp qupsample_op = {
    .kind = "QUpsample",
    .doc = "Every pixel of 8-bit numbers repeated a whole number of times, channels last.",
    .names = 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::u8},
    .body = body,
    .inputs = upsample_inputs,
    .attributes = attributes,
    .infer = infer_upsample,
    .samples = [] { return upsample_samples("QUpsample", DType::u8); },
    .defaults = {{"factors", Ints{}}},
    .output_type = DType::u8,
    .family = Family::upsampling,
    .base = "Upsample",
    .form = Form::i8,
};

}  // namespace modelflow::ops
