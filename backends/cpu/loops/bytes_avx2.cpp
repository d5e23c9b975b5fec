// The loops over bytes, compiled for AVX2.
#include "backends/cpu/loops/bytes_loops.h"

namespace modelflow::cpu {

const ByteLoops byte_loops_avx2 = kLoops;

}  // namespace modelflow::cpu
