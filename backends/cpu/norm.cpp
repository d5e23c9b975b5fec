#include "backends/cpu/norm.h"

#include "backends/cpu/norm_loops.h"
#include "modelflow/target.h"

namespace modelflow::cpu {

void Moments::add(const Moments& other) {
  if (other.count == 0) return;
  const double all = count + other.count, apart = other.mean - mean;
  mean += apart * other.count / all;
  squares += other.squares + apart * apart * count * other.count / all;
  count = all;
}

const NormLoops norm_loops_any = kLoops;

const NormLoops& norm_loops() { return host_isa() >= Isa::avx512 ? norm_loops_avx512 : norm_loops_any; }

}  // namespace modelflow::cpu
