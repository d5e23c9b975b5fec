#include "backends/cpu/rotary_loops.h"

namespace modelflow::cpu {

const RotaryLoops rotary_loops_avx512 = kLoops;

}  // namespace modelflow::cpu
