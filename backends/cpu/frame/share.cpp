// How many tasks a loop over memory is worth.
#include "backends/cpu/frame/share.h"

#include <algorithm>

namespace modelflow::cpu {

std::size_t tasks_for(std::size_t floats, const Invocation& call) {
  constexpr std::size_t kLeast = 16384;  // some microseconds
  return even_tasks(std::clamp<std::size_t>(floats / kLeast, 1, call.threads() * 2), call.threads());
}

}  // namespace modelflow::cpu
