// The machine that will run a model: a CPU with its instruction sets or a GPU, in numbers that kernels and costs ask
// for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace modelflow {

enum class DType : std::int32_t;

/// Where a kernel runs and the memory of its operands lies.
enum class Device : std::uint8_t { cpu, cuda };
std::string_view name(Device device);

/// An instruction set that kernels are compiled for. Most imply others, see IsaSet.
enum class Isa : std::uint8_t { baseline, avx2, avx_vnni, avx512, avx512_vnni, avx512_bf16, amx };

/// The instruction sets of a CPU: no chain, as each generation leaves others out (AVX-VNNI stands without AVX-512, and
/// bfloat16 with and without AMX). A set is complete: it holds whatever its members imply.
class IsaSet {
 public:
  constexpr IsaSet() : IsaSet(Isa::baseline) {}
  constexpr IsaSet(Isa isa) : bits_(complete(isa)) {}  // NOLINT: an instruction set is a set of one
  constexpr bool has(IsaSet all) const { return (bits_ & all.bits_) == all.bits_; }
  friend constexpr IsaSet operator|(IsaSet a, IsaSet b) { return IsaSet(a.bits_ | b.bits_); }
  friend constexpr IsaSet operator&(IsaSet a, IsaSet b) { return IsaSet(a.bits_ & b.bits_); }
  friend constexpr bool operator==(IsaSet, IsaSet) = default;

  /// Those that no other member implies, joined by '+': "avx2+avx_vnni".
  std::string str() const;
  /// Throws Error(usage) for a name that is none.
  static IsaSet parse(std::string_view text);

 private:
  explicit constexpr IsaSet(std::uint32_t bits) : bits_(bits) {}

  static constexpr std::uint32_t bit(Isa isa) { return 1U << static_cast<unsigned>(isa); }
  static constexpr std::uint32_t complete(Isa isa) {
    switch (isa) {
      case Isa::baseline:
        return bit(isa);
      case Isa::avx2:
        return bit(isa) | complete(Isa::baseline);
      case Isa::avx_vnni:
      case Isa::avx512:
        return bit(isa) | complete(Isa::avx2);
      case Isa::avx512_vnni:
        return bit(isa) | complete(Isa::avx512);
      case Isa::avx512_bf16:  // every CPU that has it has VNNI
        return bit(isa) | complete(Isa::avx512_vnni);
      case Isa::amx:
        return bit(isa) | complete(Isa::avx512_bf16);
    }
    return 0;
  }

  std::uint32_t bits_;
};

/// Has a text form, so that it can stand on a command line and in a test: "cpu" (this host), "cpu:avx2",
/// "cpu:avx512_vnni,cores=2,l2=1048576", "cuda:sm_90".
struct Target {
  Device device = Device::cpu;
  IsaSet isas;                                              ///< of a CPU
  int sm = 0;                                               ///< of a GPU: its compute capability, 90 for 9.0
  int cores = 1;                                            ///< physical cores; of a GPU its multiprocessors
  std::int64_t l1 = 32 << 10, l2 = 1 << 20, l3 = 32 << 20;  ///< bytes; l1 and l2 per core. GPU: l1 is the memory that a
                                                            ///< block may share, l2 that of the device
  double flops = 40e9;                                      ///< float32 FLOP/s per core at full rate
  double half_flops = 0;    ///< the same of products in float16 and bfloat16 where units multiply these; 0: none do
  double bandwidth = 10e9;  ///< DRAM bytes/s per core
  double l2_bandwidth = 60e9;
  double launch = 0;     ///< seconds that a kernel costs beside its work
  std::string cpu_name;  ///< keys the timing cache; empty for a machine that is not this one

  static Target host();
  static Target parse(std::string_view text);
  std::string str() const;
  bool is_host() const { return !cpu_name.empty(); }
  bool has(IsaSet all) const { return isas.has(all); }

  /// Seconds for a streaming pass over `bytes`, on all cores.
  double stream(double bytes) const { return bytes / (bandwidth * cores); }
  /// Seconds for `flops` at the share of peak that the caller expects, on all cores.
  double compute(double work, double share = 0.7) const { return work / (flops * share * cores); }
  /// The same for products of numbers of this type.
  double compute(DType type, double work, double share = 0.7) const;
};

/// The instruction sets of the CPU that runs this process, as far as the environment variable MODELFLOW_MAX_ISA (a text
/// as above) allows them: to see on a large machine what a smaller one would do.
IsaSet host_isas();

}  // namespace modelflow
