// Loops that do nothing but multiply and add, one for each instruction set.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

double spin_avx2(std::size_t rounds);
double spin_avx512(std::size_t rounds);
double spin_vnni(std::size_t rounds);
double spin_bytes_amx(std::size_t rounds);
double spin_bf16_amx(std::size_t rounds);

namespace {  // every instruction set compiles its own

/// Two units of a latency of up to five steps need ten sums that do not wait for each other.
constexpr int kSums = 12;

template <class V, class Step>
double spin(std::size_t rounds, V start, double operations_per_step, Step step) {
  V sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = start;
  for (std::size_t left = rounds; left > 0; --left) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      sums[i] = step(sums[i]);
      asm volatile("" : "+v"(sums[i]));  // or the compiler leaves out what nobody reads
    }
  }
  return static_cast<double>(rounds) * kSums * operations_per_step;
}

}  // namespace
}  // namespace modelflow::cpu
