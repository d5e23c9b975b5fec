#include "backends/cpu/pointwise_loops.h"

namespace modelflow::cpu {

const PointwiseLoops pointwise_loops_avx512 = kLoops;

}  // namespace modelflow::cpu
