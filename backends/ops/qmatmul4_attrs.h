// The attributes and samples of QMatMul4.
#pragma once

#include "backends/call_attrs.h"
#include "backends/ops/matmul_attrs.h"

namespace modelflow::ops {

/// The attributes of modelflow.QMatMul4, read once and checked. Throws Error(invalid_input).
struct QMatMul4Attrs {
  explicit QMatMul4Attrs(const CallAttrs& attrs);

  std::size_t block = 32;  ///< numbers of a column of b, and of a row of a, that share a scale
  bool has_zero_point = false, has_bias = false;
  Residual residual = Residual::none;

  bool has_residual() const { return residual != Residual::none; }
  std::size_t inputs() const { return 3u + has_zero_point + has_bias + has_residual(); }
  std::size_t bias_index() const { return 3u + has_zero_point; }
  std::size_t residual_index() const { return 3u + has_zero_point + has_bias; }
};

/// Samples of QMatMul4.
std::vector<Call> qmatmul4_samples();

}  // namespace modelflow::ops
