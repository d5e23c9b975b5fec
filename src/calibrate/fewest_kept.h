#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace modelflow {

/// Which ops to keep in float32 so that a bound holds, as few as a search finds. `holds` measures one choice; what is
/// returned was measured and held. `ranked`: all ops, the most harmful first; keeping all of them holds and
/// keeping none does not, by definition.
///
/// More ops in float do not always mean less error: two errors may have cancelled each other. So the bisection over the
/// ranking only gives a first choice; then each op of it, the least harmful first, is tried in low precision again
/// while the others stay, up to `most_tries` of them.
std::set<std::string> fewest_kept(const std::vector<std::string>& ranked,
                                  const std::function<bool(const std::set<std::string>& keep)>& holds,
                                  std::size_t most_tries);

}  // namespace modelflow
