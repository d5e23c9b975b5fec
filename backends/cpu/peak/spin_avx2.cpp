// Multiplications and additions of float32 on AVX2.
#include <immintrin.h>

#include "backends/cpu/peak/spin.h"

namespace modelflow::cpu {

double spin_avx2(std::size_t rounds) {
  const __m256 half = _mm256_set1_ps(0.5f);
  return spin(rounds, half, 2 * 8, [half](__m256 sum) { return _mm256_fmadd_ps(sum, half, half); });
}

}  // namespace modelflow::cpu
