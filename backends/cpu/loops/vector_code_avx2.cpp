// The loops over vectors, compiled for AVX2.
#include "backends/cpu/loops/all_loops.h"

namespace modelflow::cpu {

const VectorCode vector_code_avx2 = kCode;

}  // namespace modelflow::cpu
