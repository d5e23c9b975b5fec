// The moments of two sets of numbers together.
#include "backends/cpu/loops/norm.h"

namespace modelflow::cpu {

void Moments::add(const Moments& other) {
  if (other.count == 0) return;
  const double all = count + other.count, apart = other.mean - mean;
  mean += apart * other.count / all;
  squares += other.squares + apart * apart * count * other.count / all;
  count = all;
}

}  // namespace modelflow::cpu
