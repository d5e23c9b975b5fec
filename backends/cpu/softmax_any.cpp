#include "backends/cpu/softmax_loops.h"

namespace modelflow::cpu {

const SoftmaxCode softmax_code_any = kCode;

}  // namespace modelflow::cpu
