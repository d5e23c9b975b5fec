// The epilogue of a matrix product in plain C++.
#include "backends/cpu/gemm/epilogue.h"

namespace modelflow::cpu {

void finish_row(const ProductEpilogue& e, std::size_t row) {
  float* c = e.c + row * e.n;
  using Use = ops::Residual;
  const float* residual = e.residual ? e.residual + row * e.n : nullptr;
  for (std::size_t j = 0; j < e.n; ++j) {
    float x = e.bias ? c[j] + e.bias[j] : c[j];
    if (e.residual_use == Use::before) x += residual[j];
    x = activate(e.activation, x);
    if (e.residual_use == Use::after) x += residual[j];
    if (e.residual_use == Use::times) x *= residual[j];
    c[j] = x;
  }
}

}  // namespace modelflow::cpu
