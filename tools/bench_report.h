// What modelflow-bench measured.
#pragma once

#include <string>
#include <vector>

#include "src/measure/roofline.h"

namespace modelflow::tools {

/// One way to run a model, with what was measured.
struct Side {
  std::string name, model;
  bool plugin = false;
  double load_seconds = 0;
  std::vector<double> latencies;  ///< seconds, one per run
  std::vector<double> medians;    ///< one per block, paired across sides
  std::vector<NodeTime> nodes;
  std::vector<Work> work;   ///< of the nodes
  std::string events;       ///< of the profile, as ONNX Runtime wrote them
  double memory_bytes = 0;  ///< what the process grew by at most from loading and running it; 0: not measured

  double percentile(double percent) const;  ///< of latencies, seconds
  double runs_per_second() const;
  /// Median over the blocks of first.median / this.median.
  double speedup_over(const Side& first) const;
};

struct BenchReport {
  std::vector<Side> sides;
  int threads = 0;
  std::string runtime;  ///< its version
  Peak peak;            ///< where there is a profile
};

std::string text_report(const BenchReport& report, std::size_t top_nodes);
std::string json_report(const BenchReport& report);

}  // namespace modelflow::tools
