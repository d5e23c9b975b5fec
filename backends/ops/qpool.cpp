// The fused op QPool: Pool of 8-bit numbers.
#include "backends/ops/pool.h"

namespace modelflow::ops {

extern const FusedOp qpool_op = {
    .kind = "QPool",
    .doc = "MaxPool, AveragePool or GlobalAveragePool of 8-bit numbers with channels last; x and y have one scale.",
    .names = 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::u8},
    .body = pool_body,
    .inputs = pool_inputs,
    .attributes = pool_attributes,
    .infer = infer_pool,
    .samples = [] { return pool_samples("QPool", DType::u8); },
    .defaults = pool_defaults(),
    .output_type = DType::u8,
    .base = "Pool",
    .form = Form::i8,
};

}  // namespace modelflow::ops
