// The epilogue of a matrix product over vectors. For files named *_avx2.cpp, see vector.h.
#pragma once

#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// Writes `columns` columns from n on of `rows` rows from m on; product(r, j, part) gives those of the product of row
/// m + r from n + j on.
template <class Product>
MODELFLOW_INLINE void finish_columns(const ProductEpilogue& e, std::size_t m, std::size_t rows, std::size_t n,
                                     std::size_t columns, Product product) {
  using Use = ops::MatMulAttrs::Residual;
  const float* residual = e.residual ? e.residual : e.c;
  const bool before = e.residual_use == Use::before, after = e.residual_use == Use::after;
  with_activation(e.activation, [&](auto f) {
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t at = (m + r) * e.n + n;
      vectors(columns, [&](std::size_t j, auto part) {
        Floats x = product(r, j, part);
        if (e.bias) x += load(e.bias + n + j, part);
        if (before) x += load(residual + at + j, part);
        x = f(x);
        if (after) x += load(residual + at + j, part);
        if (e.residual_use == Use::times) x *= load(residual + at + j, part);
        store(e.c + at + j, x, part);
      });
    }
  });
}

}  // namespace
}  // namespace modelflow::cpu
