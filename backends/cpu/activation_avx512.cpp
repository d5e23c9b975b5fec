#include "backends/cpu/activation_avx512.h"

namespace modelflow::cpu {

void activate_avx512(const ActivationSpec& spec, const float* x, float* y, std::size_t n) {
  with_activation(spec, [=](auto f) {
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(y + i, f(_mm512_loadu_ps(x + i)));
    if (i < n) _mm512_mask_storeu_ps(y + i, tail_mask(n - i), f(_mm512_maskz_loadu_ps(tail_mask(n - i), x + i)));
  });
}

}  // namespace modelflow::cpu
