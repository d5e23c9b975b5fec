#include "backends/cpu/vector_loops.h"

namespace modelflow::cpu {

const VectorCode vector_code_any = kCode;

const VectorCode& host_vector_code() {
  const Isa isa = host_isa();
  return isa >= Isa::avx512 ? vector_code_avx512 : isa >= Isa::avx2 ? vector_code_avx2 : vector_code_any;
}

}  // namespace modelflow::cpu
