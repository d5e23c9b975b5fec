// The epilogue of a matrix product in registers. For files compiled for AVX-512 only (see vector.h).
#pragma once

#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/vector/activation.h"
#include "backends/cpu/vector/bf16_avx512.h"

namespace modelflow::cpu {
namespace {

/// Which of the 32 columns from `n` on exist.
struct TwoRegisters {
  __mmask16 lanes[2];
  TwoRegisters(std::size_t n, std::size_t end)
      : lanes{first_lanes(end - n), end - n <= 16 ? static_cast<__mmask16>(0) : first_lanes(end - n - 16)} {}
  MODELFLOW_INLINE __m512 load(const float* at, int v) const { return _mm512_maskz_loadu_ps(lanes[v], at + 16 * v); }
};

/// The residual of some columns, in either type; null where there is none of this use.
struct ResidualColumns {
  const float* wide = nullptr;
  const std::uint16_t* narrow = nullptr;
  ResidualColumns(const ProductEpilogue& e, ops::Residual use, std::size_t first) {
    if (e.residual_use != use) return;
    if (e.residual) wide = e.residual + first;
    if (e.residual_bf16) narrow = e.residual_bf16 + first;
  }
  MODELFLOW_INLINE explicit operator bool() const { return wide || narrow; }
  MODELFLOW_INLINE __m512 load(const TwoRegisters& columns, std::size_t at, int v) const {
    if (wide) return columns.load(wide + at, v);
    return widen(_mm256_maskz_loadu_epi16(columns.lanes[v], narrow + at + 16 * v));
  }
};

/// Writes 32 columns (or what is left) from n on of `rows` rows from m on. product(r, v) gives 16 columns of the
/// product: those of row m + r from n + 16 v on.
template <class Product>
MODELFLOW_INLINE void finish(const ProductEpilogue& e, std::size_t m, std::size_t rows, std::size_t n,
                             Product product) {
  const TwoRegisters columns(n, e.n);
  const __m512 none = _mm512_setzero_ps();
  const __m512 bias[2] = {e.bias ? columns.load(e.bias + n, 0) : none, e.bias ? columns.load(e.bias + n, 1) : none};
  const std::size_t row = e.n, first = m * row + n;
  using Use = ops::Residual;
  const ResidualColumns before(e, Use::before, first), after(e, Use::after, first), times(e, Use::times, first);
  with_activation(e.activation, [&](auto f) {
    for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const std::size_t at = r * row;
        __m512 x = _mm512_add_ps(product(r, v), bias[v]);
        if (before) x = _mm512_add_ps(x, before.load(columns, at, v));
        x = f(x);
        if (after) x = _mm512_add_ps(x, after.load(columns, at, v));
        if (times) x = _mm512_mul_ps(x, times.load(columns, at, v));
        if (e.c_bf16)
          _mm256_mask_storeu_epi16(e.c_bf16 + first + at + 16 * v, columns.lanes[v], narrow(x));
        else
          _mm512_mask_storeu_ps(e.c + first + at + 16 * v, columns.lanes[v], x);
      }
    }
  });
}

}  // namespace
}  // namespace modelflow::cpu
