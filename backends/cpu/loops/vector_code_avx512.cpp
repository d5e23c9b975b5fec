// The loops over vectors, compiled for AVX-512.
#include "backends/cpu/loops/all_loops.h"

namespace modelflow::cpu {

const VectorCode vector_code_avx512 = kCode;

}  // namespace modelflow::cpu
