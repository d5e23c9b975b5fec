// The loops over bytes, compiled for the baseline.
#include "backends/cpu/loops/bytes_loops.h"

namespace modelflow::cpu {

const ByteLoops byte_loops_any = kLoops;

}  // namespace modelflow::cpu
