#include "backends/cpu/softmax_loops.h"

namespace modelflow::cpu {

const SoftmaxCode softmax_code_avx2 = kCode;

}  // namespace modelflow::cpu
