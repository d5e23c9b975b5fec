#pragma once

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// The attributes of modelflow.MatMul, read once and checked. Throws Error(invalid_input).
struct MatMulAttrs {
  explicit MatMulAttrs(const Attrs& attrs);

  enum class Residual { none, before, after };
  bool trans_a = false, trans_b = false, has_bias = false;
  float scale = 1;
  Residual residual = Residual::none;

  std::size_t inputs() const { return 2u + has_bias + (residual != Residual::none); }
  std::size_t residual_index() const { return 2u + has_bias; }
};

/// A call of numbers, every attribute written out: matmul_call({2, 7, 64}, {64, 96}, {{"has_bias", 1}}).
Call matmul_call(Dims a, Dims b, Attrs attrs);

/// Samples of MatMul: weights are constant in most of them.
std::vector<Call> matmul_samples();

}  // namespace modelflow::ops
