// Products of float32 numbers and weights in bfloat16, on AVX-512 without instructions for bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"

namespace modelflow::cpu {

/// Columns of B that lie side by side in packed form: one register of 32 bfloat16.
inline constexpr std::size_t kBf16Panel = 32;

/// C[m, n] = A B and what the epilogue adds, B in bfloat16 as pack_b_bf16 left it, sums in float32.
struct Bf16Gemm {
  std::size_t n = 0, k = 0;
  const float* a = nullptr;
  std::size_t lda = 0;
  const std::uint16_t* b = nullptr;
  ProductEpilogue out;
  std::size_t near = 400 << 10;  ///< bytes of A that stay in L2 beside a panel of B while all pass by
};

/// Computes the columns [n_begin, n_end) of the rows [m_begin, m_end) on the calling thread, best for few rows: B is
/// widened once per eight of them. n_begin must be a multiple of kBf16Panel. Only where host_isas().has(Isa::avx512).
void gemm_bf16_avx512(const Bf16Gemm& gemm, std::size_t m_begin, std::size_t m_end, std::size_t n_begin,
                      std::size_t n_end);

inline std::size_t packed_bf16_count(std::size_t k, std::size_t n) {
  return k * ((n + kBf16Panel - 1) / kBf16Panel * kBf16Panel);
}
/// B [k, n], or its transpose [n, k] when `transposed`, panel by panel; columns beyond n become 0. Columns j and j + 16
/// of a panel are neighbours, so that a shift and a mask widen a register.
void pack_b_bf16(const std::uint16_t* b, bool transposed, std::size_t k, std::size_t n, std::uint16_t* out);

}  // namespace modelflow::cpu
