// Winograd's method on AVX-512.
#include "backends/cpu/conv/winograd_loops.h"

namespace modelflow::cpu {

const WinogradCode winograd_avx512 = {"conv_winograd_avx512", kLanes, f32_avx512, winograd_input, winograd_output};

}  // namespace modelflow::cpu
