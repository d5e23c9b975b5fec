// What kernels take beside the bodies of their ops: measured call by call, then told as text or JSON.
#pragma once

#include <string>
#include <vector>

#include "src/measure/kernel_times.h"

namespace modelflow::tools {

/// A call and the ways to run it.
struct CallTimes {
  std::string op, text;
  Work work;
  double bytes = 0;
  std::vector<KernelTime> times = {};  ///< the body first; none where it could not be run
  std::string why_not = {};
};

struct KernelReport {
  std::vector<CallTimes> calls;
  int threads = 0;
  std::string runtime;  ///< its version
  Peak peak;
};

/// Every call with all its times, then a line for each kernel.
std::string text_report(const KernelReport& report);
std::string json_report(const KernelReport& report);

}  // namespace modelflow::tools
