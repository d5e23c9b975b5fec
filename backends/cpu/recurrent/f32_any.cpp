#include "backends/cpu/recurrent/loops.h"

namespace modelflow::cpu {

const RecurrentCode recurrent_code_any = kCode;

}  // namespace modelflow::cpu
