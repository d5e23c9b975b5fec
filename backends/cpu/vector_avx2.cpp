#include "backends/cpu/vector_loops.h"

namespace modelflow::cpu {

const VectorCode vector_code_avx2 = kCode;

}  // namespace modelflow::cpu
