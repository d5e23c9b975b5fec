#include "backends/cpu/vector_loops.h"

namespace modelflow::cpu {

const VectorCode vector_code_avx512 = kCode;

}  // namespace modelflow::cpu
