// Matrix products of float32 on vectors, and the packing of B for them.
#pragma once

#include <cstddef>
#include <string_view>

#include "backends/activation.h"
#include "backends/ops/matmul_attrs.h"
#include "modelflow/target.h"

namespace modelflow::cpu {

/// How much of a product is done at once, so that what is read again stays near.
struct GemmBlocks {
  std::size_t depth = 768, rows = 144;  ///< of k, of A
};

/// C[m, n] = activation(scale * A B + bias + residual), or the residual after it, added or multiplied. All row-major;
/// `ld*` are floats from one row to the next. B is either plain (ldb = its row length, panel = F32Code::panel) or as
/// pack_b left it (ldb = F32Code::panel, panel = F32Code::panel * k).
struct Gemm {
  std::size_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::size_t lda = 0;
  const float* b = nullptr;
  std::size_t ldb = 0, panel = 0;
  float* c = nullptr;
  std::size_t ldc = 0;
  float scale = 1;
  const float* bias = nullptr;      ///< [n]
  const float* row_bias = nullptr;  ///< [m]
  const float* residual = nullptr;
  std::size_t ldr = 0;
  ops::Residual residual_use = ops::Residual::before;  ///< where there is one
  ActivationSpec activation;
  GemmBlocks blocks = {};
};

/// Products of float32 as one instruction set computes them.
struct F32Code {
  std::string_view layout;  ///< of packed B, for the cache of weights
  /// Columns of B that lie side by side in packed form: two registers.
  std::size_t panel;
  /// Columns of the tiles: where tasks are best cut.
  std::size_t tile;
  /// The blocks that suit the caches of a machine.
  GemmBlocks (*blocks)(const Target& target);
  /// Floats of memory that `gemm` wants to put rows of A in order; 0: it reads them where they lie.
  std::size_t (*packed_a_floats)(const Gemm& gemm, std::size_t rows, std::size_t columns);
  /// Computes the columns [n_begin, n_end) of the rows [m_begin, m_end) on the calling thread. n_begin must be a
  /// multiple of `panel`. C must not overlap any operand. `own`: packed_a_floats, or null: A is read where it lies.
  void (*gemm)(const Gemm& gemm, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end,
               float* own);
  /// Packs the panels [first, last) of B [k, n] (or of its transpose [n, k] when `transposed`) into `out`, which holds
  /// all panels; columns beyond n become 0.
  void (*pack_b)(const float* b, std::size_t ldb, bool transposed, std::size_t k, std::size_t n, std::size_t first,
                 std::size_t last, float* out);
  /// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < columns.
  void (*transpose)(const float* x, std::size_t x_step, float* y, std::size_t y_step, std::size_t rows,
                    std::size_t columns);

  __attribute__((always_inline)) std::size_t panels(std::size_t n) const { return (n + panel - 1) / panel; }
  /// Floats that packed B takes.
  __attribute__((always_inline)) std::size_t packed_floats(std::size_t k, std::size_t n) const {
    return k * panels(n) * panel;
  }
};

/// Each only where host_isas() has it.
extern const F32Code f32_avx2, f32_avx512;

}  // namespace modelflow::cpu
