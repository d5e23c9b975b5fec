#include "backends/cpu/pointwise_loops.h"

namespace modelflow::cpu {

const PointwiseStep pointwise_step_avx512 = pointwise_step;

}  // namespace modelflow::cpu
