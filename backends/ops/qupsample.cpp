// The fused op QUpsample: Upsample of 8-bit numbers.
#include "backends/ops/upsample.h"

namespace modelflow::ops {

extern const FusedOp qupsample_op = {
    .kind = "QUpsample",
    .doc = "Every pixel of 8-bit numbers repeated a whole number of times, channels last.",
    .names = 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::u8, DType::i64},  // the second as in the other op of these names
    .body = upsample_body,
    .inputs = upsample_inputs,
    .attributes = upsample_attributes,
    .infer = infer_upsample,
    .samples = [] { return upsample_samples("QUpsample", DType::u8); },
    .defaults = {{"factors", Ints{}}},
    .output_type = DType::u8,
    .family = Family::upsampling,
    .base = "Upsample",
    .form = Form::i8,
};

}  // namespace modelflow::ops
