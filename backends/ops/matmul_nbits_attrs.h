// The attributes and samples of MatMulNBits.
#pragma once

#include "backends/call_attrs.h"
#include "backends/ops/matmul_attrs.h"

namespace modelflow::ops {

/// The attributes of modelflow.MatMulNBits, read once and checked. Throws Error(invalid_input).
struct MatMulNBitsAttrs {
  explicit MatMulNBitsAttrs(const CallAttrs& attrs);

  std::int64_t bits = 4;    ///< of a weight: 4 or 8
  std::int64_t block = 32;  ///< numbers of a column of b that share a scale
  bool has_bias = false;
  Residual residual = Residual::none;

  bool has_residual() const { return residual != Residual::none; }
  std::int64_t bytes() const { return block * bits / 8; }               ///< of a block
  float middle() const { return static_cast<float>(1 << (bits - 1)); }  ///< the step that stands for 0
  std::size_t inputs() const { return 3u + has_bias + has_residual(); }
  std::size_t bias_index() const { return 3u; }
  std::size_t residual_index() const { return 3u + has_bias; }
};

/// Samples of MatMulNBits.
std::vector<Call> matmul_nbits_samples();

}  // namespace modelflow::ops
