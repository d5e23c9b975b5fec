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
  using Use = ops::Residual;
  // Numbers of its own for the loop, which would read those of `e` again after everything that it stores.
  const std::size_t row = e.n;
  const float *bias = e.bias ? e.bias + n : nullptr, *residual = e.residual ? e.residual : e.c;
  float* c = e.c + m * row + n;
  residual += m * row + n;
  const bool before = e.residual_use == Use::before, after = e.residual_use == Use::after;
  const bool times = e.residual_use == Use::times;
  with_activation(e.activation, [=](auto f) {
    for (std::size_t r = 0; r < rows; ++r) {
      vectors(columns, [=](std::size_t j, auto part) {
        const std::size_t at = r * row + j;
        Floats x = product(r, j, part);
        if (bias) x += load(bias + j, part);
        if (before) x += load(residual + at, part);
        x = f(x);
        if (after) x += load(residual + at, part);
        if (times) x *= load(residual + at, part);
        store(c + at, x, part);
      });
    }
  });
}

}  // namespace
}  // namespace modelflow::cpu
