// Whether the upper parts of vector registers are in use, as the processor itself keeps track of it.
#pragma once

#include <cpuid.h>

#include <cstdint>

namespace modelflow {

/// After a call of code for AVX that left out vzeroupper: code of SSE on this thread then takes several times as long.
/// False where the processor does not say (XGETBV with ECX = 1, Intel SDM volume 1, 13.2).
inline bool upper_halves_in_use() {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  constexpr std::uint32_t kOsXsave = 1U << 27, kXgetbv1 = 1U << 2, kUpperHalves = 1U << 2 | 1U << 6;  // of ymm, of zmm
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kOsXsave)) return false;
  if (!__get_cpuid_count(0xd, 1, &a, &b, &c, &d) || !(a & kXgetbv1)) return false;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
  return a & kUpperHalves;
}

}  // namespace modelflow
