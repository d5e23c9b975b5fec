// The fused op PoolBf16: Pool with its result in bfloat16.
#include "backends/ops/bf16_body.h"
#include "backends/ops/pool.h"

namespace modelflow::ops {
namespace {

std::string body(const Call& call, int opset) {
  return rounding_result(body_behind(widening("x", "x_any"), pool_op, call, opset));
}

Verdict infer(Call& call) {
  if (Verdict v = infer_pool(call); !v) return v;
  call.outputs[0].dtype = DType::bf16;
  return yes();
}

std::vector<Call> samples() {
  std::vector<Call> calls = pool_samples("PoolBf16", DType::bf16), wide = pool_samples("PoolBf16", DType::f32);
  calls.insert(calls.end(), wide.begin(), wide.end());
  for (Call& call : calls) call.outputs[0].dtype = DType::bf16;
  return calls;
}

}  // namespace

extern const FusedOp pool_bf16_op = {
    .kind = "PoolBf16",
    .doc = "Pool of bfloat16 or float32 numbers in float32, with its result in bfloat16.",
    .names = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::undefined},
    .body = body,
    .inputs = [](const Call&) { return std::vector<std::string>{"x_any"}; },
    .attributes = pool_attributes,
    .infer = infer,
    .samples = samples,
    .defaults = pool_defaults(),
    .output_type = DType::bf16,
    .base = "Pool",
    .form = Form::bf16_result,
};

}  // namespace modelflow::ops
