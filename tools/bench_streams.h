// Throughput: many sessions at once, and the best way to share out the cores.
#pragma once

#include <string>
#include <vector>

#include "bench_report.h"
#include "modelflow/serve.h"

namespace modelflow::tools {

/// `--streams`: a number of sessions, or "best" for all ways to share out the threads.
std::vector<Split> splits_for(const std::string& streams, int threads, int cores);

struct StreamSide {
  std::string name, model;
  bool plugin = false;
  std::vector<Load> loads = {};  ///< one for each split
};

/// Each split of each side, sides taking turns, for so many seconds in all.
std::vector<StreamSide> bench_streams(Runtime& runtime, const std::vector<Side>& sides, const std::string& plugin,
                                      const std::vector<Split>& splits, const Feeds& feeds, double seconds);

std::string text_report(const std::vector<StreamSide>& sides);
std::string json_report(const std::vector<StreamSide>& sides, const std::string& runtime);

}  // namespace modelflow::tools
