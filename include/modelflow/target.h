#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace modelflow {

/// CPU instruction sets in the order in which kernels prefer them; a set implies those before it up to avx512_vnni.
enum class Isa : int { baseline, avx2, avx512, avx512_vnni, avx512_bf16, amx };

/// The machine that will run the model. Has a text form, so that it can stand on a command line and in a test:
/// "cpu" (this host), "cpu:avx2", "cpu:avx512_vnni,cores=2,l2=1048576", later "cuda:sm_90".
struct Target {
  enum class Device { cpu, cuda };
  Device device = Device::cpu;
  Isa isa = Isa::baseline;
  int cores = 1;
  std::int64_t l1 = 32 << 10, l2 = 1 << 20, l3 = 32 << 20;  ///< bytes; l1 and l2 per core
  double flops = 40e9;                                      ///< float32 FLOP/s per core at full rate
  double bandwidth = 10e9;                                  ///< DRAM bytes/s per core
  double l2_bandwidth = 60e9;
  std::string cpu_name;  ///< keys the timing cache; empty for a machine that is not this one

  static Target host();
  static Target parse(std::string_view text);
  std::string str() const;
  bool is_host() const { return !cpu_name.empty(); }

  /// Seconds for a streaming pass over `bytes`, on all cores.
  double stream(double bytes) const { return bytes / (bandwidth * cores); }
  /// Seconds for `flops` at the share of peak that the caller expects, on all cores.
  double compute(double work, double share = 0.7) const { return work / (flops * share * cores); }
};

/// The best instruction set of the CPU that runs this process, or what the environment variable MODELFLOW_MAX_ISA
/// limits it to (a name as below): to see on a large machine what a smaller one would do.
Isa host_isa();
std::string_view name(Isa isa);
/// "avx512_vnni" and the like; throws Error(usage) for anything else.
Isa isa_of(std::string_view name);

}  // namespace modelflow
