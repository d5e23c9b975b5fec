// Depthwise convolutions of float32 on AVX2.
#include "backends/cpu/conv/depthwise_loops.h"

namespace modelflow::cpu {

const DepthwiseCode depthwise_avx2 = {depthwise_scratch, depthwise_block};

}  // namespace modelflow::cpu
