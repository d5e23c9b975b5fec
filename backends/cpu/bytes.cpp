#include "backends/cpu/bytes_loops.h"

namespace modelflow::cpu {

const ByteLoops byte_loops_any = kLoops;

const ByteLoops& byte_loops() {
  const Isa isa = host_isa();
  return isa >= Isa::avx512 ? byte_loops_avx512 : isa >= Isa::avx2 ? byte_loops_avx2 : byte_loops_any;
}

}  // namespace modelflow::cpu
