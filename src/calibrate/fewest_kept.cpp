#include "src/calibrate/fewest_kept.h"

#include <algorithm>

namespace modelflow {

std::set<std::string> fewest_kept(const std::vector<std::string>& ranked,
                                  const std::function<bool(const std::set<std::string>& keep)>& holds,
                                  std::size_t most_tries) {
  using Names = std::set<std::string>;
  const auto first = [&](std::size_t count) {
    return Names(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count));
  };
  std::size_t low = 0, high = ranked.size();  // `low` breaks the bound, `high` keeps it
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (holds(first(middle)) ? high : low) = middle;
  }
  Names keep = first(high);
  // The last one was part of the bisection: without it the bound broke.
  for (std::size_t tried = 0; tried < most_tries && tried + 1 < high; ++tried) {
    Names fewer = keep;
    fewer.erase(ranked[high - 2 - tried]);
    if (holds(fewer)) keep = std::move(fewer);
  }
  return keep;
}

}  // namespace modelflow
