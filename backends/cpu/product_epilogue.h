#pragma once

#include <cstddef>

#include "backends/cpu/activation.h"
#include "backends/ops/matmul_attrs.h"

namespace modelflow::cpu {

/// What follows a product C [m, n]: activation(C + bias + residual), or the residual after the activation, added or
/// multiplied. C and the residual are dense.
struct ProductEpilogue {
  float* c = nullptr;
  std::size_t n = 0;
  const float* bias = nullptr;  ///< [n]
  const float* residual = nullptr;
  ops::MatMulAttrs::Residual residual_use = ops::MatMulAttrs::Residual::none;
  ActivationSpec activation;
};

/// On one row of C in place, in plain C++. The vector form is finish() in product_epilogue_avx512.h.
void finish_row(const ProductEpilogue& epilogue, std::size_t row);

}  // namespace modelflow::cpu
