// What this machine is: instruction sets from cpuid (as far as the OS saves their registers), the rest from sysfs.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "modelflow/error.h"
#include "modelflow/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace modelflow {
namespace {

#if defined(__x86_64__)

/// The tile registers are off until the process asks Linux for them.
bool amx_granted() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const unsigned wanted = 1U << 22 | 1U << 24 | 1U << 25;  // AMX-BF16, AMX-TILE, AMX-INT8
  return (d & wanted) == wanted && amx_granted();
}

bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1U << 4) != 0;
}

IsaSet detected() {
  __builtin_cpu_init();
  const auto all = [](std::initializer_list<bool> flags) { return std::ranges::all_of(flags, std::identity()); };
  IsaSet set;
  if (!all({__builtin_cpu_supports("avx2") != 0, __builtin_cpu_supports("fma") != 0})) return set;
  set = set | Isa::avx2;
  if (has_avx_vnni()) set = set | Isa::avx_vnni;
  if (!all({__builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512bw") != 0,
            __builtin_cpu_supports("avx512dq") != 0, __builtin_cpu_supports("avx512vl") != 0}))
    return set;
  set = set | Isa::avx512;
  if (!__builtin_cpu_supports("avx512vnni")) return set;
  set = set | Isa::avx512_vnni;
  if (!__builtin_cpu_supports("avx512bf16")) return set;
  set = set | Isa::avx512_bf16;
  return has_amx() ? set | Isa::amx : set;
}

std::string brand() {
  unsigned words[12] = {};
  for (unsigned i = 0; i < 3; ++i) {
    __get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
  }
  std::string text(reinterpret_cast<const char*>(words), sizeof(words));
  text.resize(std::min(text.find('\0'), text.size()));
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  unsigned a = 0, b = 0, c = 0, d = 0;
  __get_cpuid(1, &a, &b, &c, &d);  // virtual machines hide the brand: family, model and stepping tell more
  return (text.empty() ? "x86-64" : text) + " #" + std::to_string(a);
}

#else

IsaSet detected() { return {}; }
std::string brand() { return "cpu"; }

#endif

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// "1024K", "32768K", "4M" -> bytes; 0 when unreadable.
std::int64_t cache_bytes(const std::string& text) {
  long long value = 0;
  char unit = 0;
  if (std::sscanf(text.c_str(), "%lld%c", &value, &unit) < 1 || value <= 0) return 0;
  return value << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}

void read_caches(Target& target) {
  for (int i = 0; i < 8; ++i) {
    const std::string at = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::int64_t size = cache_bytes(first_line(at + "size"));
    if (size == 0 || first_line(at + "type") == "Instruction") continue;
    const std::string level = first_line(at + "level");
    (level == "1" ? target.l1 : level == "2" ? target.l2 : target.l3) = size;
  }
}

/// Physical cores that this process may use.
int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string at = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const std::string core = first_line(at + "core_id");
    cores.insert(core.empty() ? "cpu " + std::to_string(cpu) : first_line(at + "physical_package_id") + "/" + core);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

double clock_hz() {
  const std::string khz = first_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  double value = 0;
  if (std::sscanf(khz.c_str(), "%lf", &value) == 1 && value > 0) return value * 1e3;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("cpu MHz") && std::sscanf(line.c_str(), "cpu MHz : %lf", &value) == 1) return value * 1e6;
  }
  return 2.5e9;
}

/// Nothing where all are.
std::optional<IsaSet> allowed() {
  const char* most = std::getenv("MODELFLOW_MAX_ISA");
  if (!most || *most == '\0') return {};
  try {
    return IsaSet::parse(most);
  } catch (const Error& error) {
    throw error.within("MODELFLOW_MAX_ISA");
  }
}

}  // namespace

IsaSet host_isas() {
  static const IsaSet set = [] {
    const std::optional<IsaSet> most = allowed();
    return most ? detected() & *most : detected();
  }();
  return set;
}

Target Target::host() {
  Target target;
  target.isas = host_isas();
  target.cpu_name = brand();
  target.cores = usable_cores();
  read_caches(target);
  // Two fused multiply-adds per cycle, at the 94 % of the clock that AVX-512 code was measured to keep.
  const double lanes = target.has(Isa::avx512) ? 16 : target.has(Isa::avx2) ? 8 : 2;
  target.flops = std::round(clock_hz() * lanes * 4 * 0.94 / 1e9) * 1e9;
  target.l2_bandwidth = target.has(Isa::avx512) ? 95e9 : 60e9;
  return target;
}

}  // namespace modelflow
