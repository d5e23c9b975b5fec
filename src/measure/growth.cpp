// How much memory work takes, by the high-water mark that Linux keeps for a process.
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "src/measure/sides.h"

namespace modelflow {
namespace {

/// A line of /proc/self/status, as "VmHWM:   123 kB"; 0 where it is not there.
double status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == name && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

double growth_of_memory(const std::function<void()>& work) {
  malloc_trim(0);  // what earlier work gave back would be taken again unseen
  const double before = status_bytes("VmRSS:");
  const bool reset = static_cast<bool>(std::ofstream("/proc/self/clear_refs") << "5" << std::flush);
  work();
  return reset && before > 0 ? std::max(0.0, status_bytes("VmHWM:") - before) : 0;
}

}  // namespace modelflow
