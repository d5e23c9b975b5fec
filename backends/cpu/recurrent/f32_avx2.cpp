// LSTM and GRU with float32 weights, compiled for AVX2.
#include "backends/cpu/recurrent/loops.h"

namespace modelflow::cpu {

const RecurrentCode recurrent_code_avx2 = kCode;

}  // namespace modelflow::cpu
