// One step of a tile of sums in registers: a column of A times a row of B. For files named so, see vector.h.
#pragma once

#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

// Written out on AVX2, whose 16 registers the compiler runs out of: GCC 12 takes forms of the multiplication that
// overwrite a factor, and an address register for each row and step (Zen 3: 83 % of peak without, 90 % with). Clang is
// here for the sanitizers, which do not see what assembly reads.
#if !defined(__AVX512F__) && !defined(__clang__)
#define MODELFLOW_WRITTEN_OUT
#endif

/// sum += a * b.
MODELFLOW_INLINE void add_product(Floats& sum, Floats a, Floats b) {
#if defined(MODELFLOW_WRITTEN_OUT)
  asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
#else
  sum += a * b;
#endif
}

/// at[Row * step + Offset] in all lanes, for up to three rows that share a pointer.
template <int Row, int Offset>
MODELFLOW_INLINE Floats all_at(const float* at, std::ptrdiff_t step) {
  static_assert(Row < 3);
#if defined(MODELFLOW_WRITTEN_OUT)
  Floats x;
  const auto& memory = *reinterpret_cast<const float(*)[]>(at);  // what is read
  if constexpr (Row == 0)
    asm("vbroadcastss %c2(%1), %0" : "=x"(x) : "r"(at), "i"(4 * Offset), "m"(memory));
  else
    asm("vbroadcastss %c3(%1,%2,%c4), %0" : "=x"(x) : "r"(at), "r"(step), "i"(4 * Offset), "i"(4 * Row), "m"(memory));
  return x;
#else
  return all(at[Row * step + Offset]);
#endif
}

#undef MODELFLOW_WRITTEN_OUT

}  // namespace
}  // namespace modelflow::cpu
