#include "backends/cpu/vector_loops.h"

namespace modelflow::cpu {

const VectorCode vector_code_any = code_with(byte_loops_any);

}  // namespace modelflow::cpu
