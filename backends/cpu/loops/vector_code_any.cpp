// The loops over vectors, compiled for the baseline.
#include "backends/cpu/loops/all_loops.h"

namespace modelflow::cpu {

const VectorCode vector_code_any = kCode;

}  // namespace modelflow::cpu
