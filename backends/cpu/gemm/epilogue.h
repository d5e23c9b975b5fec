// The epilogue of a matrix product: bias, residual and activation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/activation.h"
#include "backends/ops/matmul_attrs.h"

namespace modelflow::cpu {

/// What follows a product C [m, n]: activation(C + bias + residual), or the residual after the activation, added or
/// multiplied. C and the residual are dense.
struct ProductEpilogue {
  float* c = nullptr;
  std::size_t n = 0;
  const float* bias = nullptr;  ///< [n]
  const float* residual = nullptr;
  ops::Residual residual_use = ops::Residual::none;
  ActivationSpec activation;
  /// In place of `c` and of `residual` where these are bfloat16; finish() alone knows them.
  std::uint16_t* c_bf16 = nullptr;
  const std::uint16_t* residual_bf16 = nullptr;

  /// Only sums follow the product, so that their order does not matter.
  bool only_adds() const { return activation.kind == Activation::none && residual_use != ops::Residual::times; }
};

/// On one row of C in place, in plain C++. The vector form is finish() in epilogue_avx512.h.
void finish_row(const ProductEpilogue& epilogue, std::size_t row);

}  // namespace modelflow::cpu
