#pragma once

// For files named *_avx512.cpp and *_vnni.cpp only, see activation_avx512.h.

#include "backends/cpu/activation_avx512.h"
#include "backends/cpu/product_epilogue.h"

namespace modelflow::cpu {
namespace {

/// Writes up to `columns` (a multiple of 16) columns from n on of `rows` rows from m on. product(r, v, lanes) gives 16
/// columns of the product: those of row m + r from n + 16 v on.
template <class Product>
void finish(const ProductEpilogue& e, std::size_t m, std::size_t rows, std::size_t n, std::size_t columns,
            Product product) {
  const float* before = e.residual_after ? nullptr : e.residual;
  const float* after = e.residual_after ? e.residual : nullptr;
  const std::size_t end = n + columns < e.n ? n + columns : e.n;
  with_activation(e.activation, [&](auto f) {
    for (std::size_t v = 0, j = n; j < end; ++v, j += 16) {
      const __mmask16 lanes = end - j < 16 ? tail_mask(end - j) : static_cast<__mmask16>(0xffff);
      const __m512 bias = e.bias ? _mm512_maskz_loadu_ps(lanes, e.bias + j) : _mm512_setzero_ps();
      for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t at = (m + r) * e.n + j;
        __m512 x = _mm512_add_ps(product(r, v, lanes), bias);
        if (before) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(lanes, before + at));
        x = f(x);
        if (after) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(lanes, after + at));
        _mm512_mask_storeu_ps(e.c + at, lanes, x);
      }
    }
  });
}

}  // namespace
}  // namespace modelflow::cpu
