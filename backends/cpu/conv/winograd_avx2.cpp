// Winograd's method on AVX2.
#include "backends/cpu/conv/winograd_loops.h"

namespace modelflow::cpu {

const WinogradCode winograd_avx2 = {"conv_winograd_avx2", kLanes, f32_avx2, winograd_input, winograd_output};

}  // namespace modelflow::cpu
