// Products of float32 on vectors, on the threads of a call.
#pragma once

#include <memory>
#include <span>

#include "backends/cpu/gemm/f32.h"
#include "backends/cpu/gemm/split.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// How one instruction set multiplies on a machine.
class F32Product {
 public:
  F32Product(const F32Code& f32, const Target& target);

  /// Tells a product that its B is packed.
  void reads_packed(Gemm& gemm) const;
  /// Products of the same extents.
  void multiply(std::span<const Gemm> products, Invocation& call) const;

  const F32Code& code;
  GemmBlocks blocks;

 private:
  std::size_t tiles(std::size_t n) const { return (n + code.tile - 1) / code.tile; }
  ProductSplit split(const Gemm& gemm, std::size_t threads) const;
  void run_part(const Gemm& gemm, const ProductSplit& s, std::size_t task, std::byte* own) const;
  std::size_t own_bytes(const Gemm& gemm, const ProductSplit& s) const;

  std::size_t small_b_;  ///< bytes of B that stay in L2 beside the rest
};

/// The matrix [k, n] in `b`, or its transpose there, as this code reads it.
std::shared_ptr<const std::byte> packed_matrix(const Tensor& b, std::size_t k, std::size_t n, bool transposed,
                                               const F32Code& code);

}  // namespace modelflow::cpu
