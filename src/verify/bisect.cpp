// The first wrong one of many steps, by halving.
#include "src/verify/bisect.h"

namespace modelflow {

std::size_t first_culprit(std::size_t count, const std::function<bool(std::size_t)>& fails) {
  std::size_t good = 0, bad = count;
  while (bad - good > 1) {
    const std::size_t middle = good + (bad - good) / 2;
    (fails(middle) ? bad : good) = middle;
  }
  return bad - 1;
}

}  // namespace modelflow
