#pragma once

#include "backends/ops/matmul_attrs.h"

namespace modelflow::ops {

/// The attributes of modelflow.QMatMul, read once and checked. Throws Error(invalid_input).
struct QMatMulAttrs {
  explicit QMatMulAttrs(const Attrs& attrs);

  bool trans_b = false, has_bias = false;
  MatMulAttrs::Residual residual = MatMulAttrs::Residual::none;
  float a_scale = 0;  ///< 0: every row of a gets its own scale at run time
  std::int32_t a_zero_point = 0;

  bool dynamic() const { return a_scale == 0; }
  bool has_residual() const { return residual != MatMulAttrs::Residual::none; }
  std::size_t inputs() const { return 3u + has_bias + has_residual(); }
  std::size_t residual_index() const { return 3u + has_bias; }
};

/// Samples of QMatMul.
std::vector<Call> qmatmul_samples();

}  // namespace modelflow::ops
