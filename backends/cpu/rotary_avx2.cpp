#include "backends/cpu/rotary_loops.h"

namespace modelflow::cpu {

const RotaryLoops rotary_loops_avx2 = kLoops;

}  // namespace modelflow::cpu
