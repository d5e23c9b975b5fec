// Orders of channels in turn, made and recognized.
#include "passes/graph/shuffle.h"

namespace modelflow::passes {

Ints shuffled(std::int64_t count, std::int64_t groups) {
  Ints order;
  const std::int64_t each = count / groups;
  for (std::int64_t i = 0; i < each; ++i)
    for (std::int64_t g = 0; g < groups; ++g) order.push_back(g * each + i);
  return order;
}

std::int64_t groups_of(const Ints& order) {
  const auto count = static_cast<std::int64_t>(order.size());
  // The second index is the first of the second group.
  const std::int64_t each = count > 1 ? order[1] : 0;
  if (each < 2 || count % each != 0) return 0;
  return order == shuffled(count, count / each) ? count / each : 0;
}

}  // namespace modelflow::passes
