// The attributes of MatMulBf16 and MatMulToBf16.
#pragma once

#include "backends/call_attrs.h"
#include "backends/ops/matmul_attrs.h"
#include "src/core/bf16.h"

namespace modelflow::ops {

/// The attributes of modelflow.MatMulBf16, read once and checked. Throws Error(invalid_input).
struct MatMulBf16Attrs {
  explicit MatMulBf16Attrs(const CallAttrs& attrs);

  bool trans_b = false, has_bias = false;
  bool round_a = false;  ///< a is rounded to bfloat16 too: what machines with bfloat16 arithmetic compute
  Residual residual = Residual::none;

  bool has_residual() const { return residual != Residual::none; }
  std::size_t inputs() const { return 2u + has_bias + has_residual(); }
  std::size_t residual_index() const { return 2u + has_bias; }
};

}  // namespace modelflow::ops
