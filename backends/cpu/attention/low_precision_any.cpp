// QAttention and AttentionBf16 in float32, compiled for the baseline.
#include "backends/cpu/attention/low_precision_loops.h"

namespace modelflow::cpu {

const AttentionCode qattention_code_any = kept_code<InSteps>(kMostStepKeys);
const AttentionCode attention_bf16_code_any = kept_code<InBf16>(SIZE_MAX);

}  // namespace modelflow::cpu
