// Dense convolutions of float32 on AVX2.
#include "backends/cpu/conv/dense_loops.h"

namespace modelflow::cpu {

const DenseCode dense_avx2 = {"conv_dense_avx2", kFloats, dense_scratch, dense_block};

}  // namespace modelflow::cpu
