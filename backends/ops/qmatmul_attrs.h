// The attributes and samples of QMatMul.
#pragma once

#include "backends/call_attrs.h"
#include "backends/ops/matmul_attrs.h"

namespace modelflow::ops {

/// The attributes of modelflow.QMatMul, read once and checked. Throws Error(invalid_input).
struct QMatMulAttrs {
  explicit QMatMulAttrs(const CallAttrs& attrs);

  bool trans_b = false, has_zero_point = false, has_bias = false;
  Residual residual = Residual::none;
  float a_scale = 0;  ///< 0: known at run time only
  std::int32_t a_zero_point = 0;
  bool per_tensor = false;  ///< at run time: one scale and zero point for all of a, else a scale for every row

  bool by_row() const { return a_scale == 0 && !per_tensor; }
  bool has_residual() const { return residual != Residual::none; }
  std::size_t inputs() const { return 3u + has_zero_point + has_bias + has_residual(); }
  std::size_t bias_index() const { return 3u + has_zero_point; }
  std::size_t residual_index() const { return 3u + has_zero_point + has_bias; }
};

/// Samples of QMatMul.
std::vector<Call> qmatmul_samples();

}  // namespace modelflow::ops
