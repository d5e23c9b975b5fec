// Moments from sums, and of two sets of numbers together.
#include "backends/cpu/loops/norm.h"

#include <algorithm>

namespace modelflow::cpu {

Moments Moments::about(double middle, double count, double sum, double squares) {
  return {count, middle + sum / count, std::max(squares - sum * sum / count, 0.0)};
}

void Moments::add(const Moments& other) {
  if (other.count == 0) return;
  const double all = count + other.count, apart = other.mean - mean;
  mean += apart * other.count / all;
  squares += other.squares + apart * apart * count * other.count / all;
  count = all;
}

}  // namespace modelflow::cpu
