// QAttention and AttentionBf16 in float32, compiled for AVX2.
#include "backends/cpu/attention/low_precision_loops.h"

namespace modelflow::cpu {

const AttentionCode qattention_code_avx2 = kept_code<InSteps>(kMostStepKeys);
const AttentionCode attention_bf16_code_avx2 = kept_code<InBf16>(SIZE_MAX);

}  // namespace modelflow::cpu
