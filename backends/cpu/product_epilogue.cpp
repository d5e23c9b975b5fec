#include "backends/cpu/product_epilogue.h"

namespace modelflow::cpu {

void finish_row(const ProductEpilogue& e, std::size_t row) {
  float* c = e.c + row * e.n;
  const float* residual = e.residual ? e.residual + row * e.n : nullptr;
  for (std::size_t j = 0; j < e.n; ++j) {
    float x = e.bias ? c[j] + e.bias[j] : c[j];
    if (residual && !e.residual_after) x += residual[j];
    x = activate(e.activation, x);
    c[j] = residual && e.residual_after ? x + residual[j] : x;
  }
}

}  // namespace modelflow::cpu
