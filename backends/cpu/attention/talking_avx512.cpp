// Talking heads, compiled for AVX-512.
#include "backends/cpu/attention/talking_loops.h"

namespace modelflow::cpu {

void mix_heads_avx512(const HeadMixing& mixing) { mix_heads(mixing); }

}  // namespace modelflow::cpu
