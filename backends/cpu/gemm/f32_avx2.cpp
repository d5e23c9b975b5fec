// Matrix products of float32 on AVX2.
#include "backends/cpu/gemm/f32_loops.h"

namespace modelflow::cpu {

const F32Code f32_avx2 = {"gemm_avx2", kPanel, kMaxColumns, blocks, packed_a_floats, gemm, pack_b, transpose};

}  // namespace modelflow::cpu
