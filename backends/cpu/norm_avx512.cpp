#include "backends/cpu/norm_loops.h"

namespace modelflow::cpu {

const NormLoops norm_loops_avx512 = kLoops;

}  // namespace modelflow::cpu
