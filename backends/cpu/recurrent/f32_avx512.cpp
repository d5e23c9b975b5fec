// LSTM and GRU with float32 weights, compiled for AVX-512.
#include "backends/cpu/recurrent/loops.h"

namespace modelflow::cpu {

const RecurrentCode recurrent_code_avx512 = kCode;

}  // namespace modelflow::cpu
