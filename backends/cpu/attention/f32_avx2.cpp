// Attention of float32, compiled for AVX2.
#include "backends/cpu/attention/loops.h"

namespace modelflow::cpu {

const AttentionCode attention_code_avx2 = kCode;

}  // namespace modelflow::cpu
