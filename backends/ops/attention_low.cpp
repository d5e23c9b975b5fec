// Attention whose two products are in low precision: for the rest it is Attention.
#include "backends/ops/attention_attrs.h"
#include "backends/ops/work.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call& call) { return attention_op.inputs(call); }
std::vector<std::string> attributes(const Call& call, int opset) { return attention_op.attributes(call, opset); }
Verdict infer(Call& call) { return attention_op.infer(call); }

std::vector<Call> samples_of(const char* op) {
  std::vector<Call> calls = attention_samples();
  std::erase_if(calls, [](const Call& call) { return AttentionAttrs(call).has_grid; });  // no kernel for those
  for (Call& call : calls) call.op = op;
  return calls;
}

}  // namespace

// Its scales are those of the data at hand, so that it needs no calibration: a row of queries or keys and a column of
// values have one each, as the rows of a in QMatMul.
extern const FusedOp qattention_op = {
    .kind = "QAttention",
    .doc =
        "Attention in int8: rows of queries and keys, columns of values quantized on the way in, probabilities in "
        "steps of a 255th of the largest.",
    .names = 0,
    .min_inputs = 1,
    .max_inputs = 5,
    .input_types = {DType::f32, DType::undefined, DType::f32, DType::undefined, DType::f32},
    .body = qattention_body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = [] { return samples_of("QAttention"); },
    .defaults = attention_defaults(),
    .family = Family::attention,
    .base = "Attention",
    .form = Form::i8,
    .flops = attention_flops,
    .plain_bytes = attention_bytes,
};

extern const FusedOp attention_bf16_op = {
    .kind = "AttentionBf16",
    .doc =
        "Attention with queries, keys, values and probabilities rounded to bfloat16 on the way in; sums, masks and "
        "softmax in float32.",
    .names = 0,
    .min_inputs = 1,
    .max_inputs = 5,
    .input_types = {DType::f32, DType::undefined, DType::f32, DType::undefined, DType::f32},
    .body = attention_bf16_body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = [] { return samples_of("AttentionBf16"); },
    .defaults = attention_defaults(),
    .family = Family::attention,
    .base = "Attention",
    .form = Form::bf16,
    .flops = attention_flops,
    .plain_bytes = attention_bytes,
};

}  // namespace modelflow::ops
