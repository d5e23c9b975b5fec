#include "backends/cpu/attention/loops.h"

namespace modelflow::cpu {

const AttentionCode attention_code_avx2 = kCode;

}  // namespace modelflow::cpu
