// Talking heads, compiled for AVX2.
#include "backends/cpu/attention/talking_loops.h"

namespace modelflow::cpu {

void mix_heads_avx2(const HeadMixing& mixing) { mix_heads(mixing); }

}  // namespace modelflow::cpu
