// What memory there is and how much of it a process holds, from /proc and the control group.
#include "modelflow/limits.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "modelflow/error.h"

namespace modelflow {
namespace {

namespace fs = std::filesystem;

constexpr double kShare = 0.9;  // of the memory: beyond it the system begins to swap or to kill

/// The number in a file of one line; 0 for "max" and where there is none.
double number_in(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  return in >> value && value > 0 ? value : 0;
}

void at_most(double bound, double& value) {
  if (bound > 0 && (value == 0 || bound < value)) value = bound;
}

/// The bound of the control group that this process is in, and of those around it (version 2, or "memory" of version
/// 1).
double group_bound() {
  const fs::path root = "/sys/fs/cgroup";
  double bound = number_in(root / "memory.max");
  at_most(number_in(root / "memory/memory.limit_in_bytes"), bound);
  std::ifstream groups("/proc/self/cgroup");  // "0::/a/b"
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (fs::path at = line.substr(4); !at.empty(); at = at.parent_path())
      at_most(number_in(root / at / "memory.max"), bound);
  }
  return bound;
}

double whole_memory() {
  const double pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  double bytes = std::max(0.0, pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  at_most(group_bound(), bytes);
  return bytes;
}

/// "k", "Ki" or "KiB" after a number: the power of 1024, or -1.
int power_of(std::string_view unit) {
  constexpr std::string_view kUnits = "KMGT";
  if (unit.empty() || unit == "B" || unit == "b") return 0;
  const std::size_t power = kUnits.find(unit[0] >= 'a' ? static_cast<char>(unit[0] - 32) : unit[0]);
  const std::string_view rest = unit.substr(1);
  const bool known = rest.empty() || rest == "B" || rest == "b" || rest == "i" || rest == "iB";
  return power == kUnits.npos || !known ? -1 : static_cast<int>(power) + 1;
}

}  // namespace

double parse_bytes(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const int power = error == std::errc() ? power_of({rest, static_cast<std::size_t>(end - rest)}) : -1;
  const double bytes = std::ldexp(value, 10 * power);
  if (power < 0 || !(bytes >= 0) || !std::isfinite(bytes))
    throw Error(ErrorKind::usage, "'" + std::string(text) + "' is no amount of memory such as 500M or 8G");
  return bytes;
}

double most_memory(const Limits& limits) {
  if (limits.max_memory > 0) return limits.max_memory;
  static const double whole = whole_memory();
  return kShare * whole;
}

double memory_of(int process) {
  std::ifstream status(process ? "/proc/" + std::to_string(process) + "/status" : "/proc/self/status");
  double kilobytes = 0;
  for (std::string word; status >> word;) {
    double value = 0;
    if ((word == "RssAnon:" || word == "RssShmem:" || word == "VmSwap:") && status >> value) kilobytes += value;
    if (word == "VmSwap:") break;
  }
  return kilobytes * 1024;
}

}  // namespace modelflow
