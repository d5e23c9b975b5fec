// LSTM and GRU with float32 weights, compiled for the baseline.
#include "backends/cpu/recurrent/loops.h"

namespace modelflow::cpu {

const RecurrentCode recurrent_code_any = kCode;

}  // namespace modelflow::cpu
