// Which ops gain no time from lower precision.
#pragma once

#include <set>
#include <string>

#include "src/measure/node_times.h"

namespace modelflow {

/// A fused model before layout, and the times of its nodes as it runs.
struct Timed {
  const Model& fused;
  const NodeTimes& times;
};

/// Names of the nodes of `lowered` that had better stay as they are in `full`, where nodes go by the same names: the
/// split of the graph that takes the least time altogether, conversions included where a value crosses it.
std::set<std::string> without_gain(const Timed& full, const Timed& lowered);

}  // namespace modelflow
