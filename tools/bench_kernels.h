// `modelflow-bench --kernels`: every kernel beside the body of its op.
#pragma once

#include <map>
#include <string>

#include "kernel_report.h"

namespace modelflow::tools {

struct KernelSettings {
  std::string model;  ///< its fused calls; empty: the sample calls of the ops
  std::string op;     ///< of this kind alone; empty: all
  std::map<std::string, Dims> shapes;
  int threads = 1;
  double seconds = 0.3;  ///< for each call
};

/// Throws Error(usage) where no op of this build or of the model is of that kind.
KernelReport bench_kernels(Runtime& runtime, const KernelSettings& settings);

}  // namespace modelflow::tools
