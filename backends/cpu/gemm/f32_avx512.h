// Matrix products of float32 on AVX-512, and the packing of B for them.
#pragma once

#include <cstddef>

#include "backends/activation.h"
#include "backends/ops/matmul_attrs.h"

namespace modelflow::cpu {

/// Columns of B that lie side by side in packed form: two 16-float registers.
inline constexpr std::size_t kGemmPanel = 32;

/// C[m, n] = activation(scale * A B + bias + residual), or the residual after it, added or multiplied. All row-major;
/// `ld*` are floats from one row to the next. B is either plain (ldb = its row length, panel = kGemmPanel) or packed by
/// pack_b_avx512 (ldb = kGemmPanel, panel = kGemmPanel * k).
struct Gemm {
  std::size_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::size_t lda = 0;
  const float* b = nullptr;
  std::size_t ldb = 0, panel = 0;
  float* c = nullptr;
  std::size_t ldc = 0;
  float scale = 1;
  const float* bias = nullptr;  ///< [n]
  const float* residual = nullptr;
  std::size_t ldr = 0;
  ops::MatMulAttrs::Residual residual_use = ops::MatMulAttrs::Residual::before;  ///< where there is one
  ActivationSpec activation;
};

/// Computes the columns [n_begin, n_end) of the rows [m_begin, m_end) on the calling thread. n_begin must be a
/// multiple of kGemmPanel. C must not overlap any operand. Only where host_isas().has(Isa::avx512).
void gemm_avx512(const Gemm& gemm, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end);

/// Floats that packed B takes.
inline std::size_t packed_b_floats(std::size_t k, std::size_t n) {
  return k * ((n + kGemmPanel - 1) / kGemmPanel * kGemmPanel);
}

/// Packs the panels [first, last) of B [k, n] (or of its transpose [n, k] when `transposed`) into `out`, which holds
/// all panels; columns beyond n become 0.
void pack_b_avx512(const float* b, std::size_t ldb, bool transposed, std::size_t k, std::size_t n, std::size_t first,
                   std::size_t last, float* out);

/// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < columns.
void transpose_avx512(const float* x, std::size_t x_step, float* y, std::size_t y_step, std::size_t rows,
                      std::size_t columns);

}  // namespace modelflow::cpu
