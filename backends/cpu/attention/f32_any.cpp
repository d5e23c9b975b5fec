// Attention of float32, compiled for the baseline.
#include "backends/cpu/attention/loops.h"

namespace modelflow::cpu {

const AttentionCode attention_code_any = kCode;

}  // namespace modelflow::cpu
