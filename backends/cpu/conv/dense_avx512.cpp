// Dense convolutions of float32 on AVX-512.
#include "backends/cpu/conv/dense_loops.h"

namespace modelflow::cpu {

const DenseCode dense_avx512 = {"conv_dense_avx512", kFloats, dense_scratch, dense_block};

}  // namespace modelflow::cpu
