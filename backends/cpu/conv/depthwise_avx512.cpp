// Depthwise convolutions of float32 on AVX-512.
#include "backends/cpu/conv/depthwise_loops.h"

namespace modelflow::cpu {

const DepthwiseCode depthwise_avx512 = {depthwise_scratch, depthwise_block};

}  // namespace modelflow::cpu
