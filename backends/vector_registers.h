// Gives vector registers back to the code of a host as it expects them.
#pragma once

namespace modelflow {

/// At its end the upper halves of the vector registers are not in use. Stands where a kernel returns to its host:
/// GCC 12 leaves vzeroupper out of some functions for AVX (those that take vectors by value, returns in the middle),
/// and then all code of SSE behind them on this thread, the C library's too, takes up to 8 times as long (measured on
/// an Emerald Rapids; Intel Optimization Manual, 15.3).
class VectorRegisters {
 public:
  VectorRegisters() = default;
  ~VectorRegisters() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx")) asm volatile("vzeroupper");
#endif
  }
  VectorRegisters(const VectorRegisters&) = delete;
  VectorRegisters& operator=(const VectorRegisters&) = delete;
};

}  // namespace modelflow
