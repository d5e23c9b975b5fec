// How fast this machine computes, measured.
#pragma once

#include "modelflow/target.h"

namespace modelflow {

/// The most that the machine computes, measured by multiply-adds on registers alone, each two operations.
struct Peak {
  double float32 = 0;  ///< operations per second on all of the threads
  double bf16 = 0;     ///< the same with factors in bfloat16, where the CPU has AMX; else that of float32
  double int8 = 0;     ///< the same with 8-bit factors; that of float32 where the CPU has no instruction for them
};

/// What is multiplied.
enum class Factors { float32, bf16, int8 };

/// Takes a fifth of a second.
Peak measure_peak(int threads);

/// This machine as it is: `flops` of the host count two units of 512 bits, which some CPUs do not have (in Zen 4 and in
/// small Xeons AVX-512 multiplies no more than AVX2 does). Compares the two, which no clock and no other process
/// changes; takes a millisecond, once in a process. Any other target as it came.
Target with_measured_units(Target target);

}  // namespace modelflow
