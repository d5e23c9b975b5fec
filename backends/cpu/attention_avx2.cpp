#include "backends/cpu/attention_loops.h"

namespace modelflow::cpu {

const AttentionCode attention_code_avx2 = kCode;

}  // namespace modelflow::cpu
