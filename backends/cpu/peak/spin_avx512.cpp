// Multiplications and additions of float32 on AVX-512.
#include <immintrin.h>

#include "backends/cpu/peak/spin.h"

namespace modelflow::cpu {

double spin_avx512(std::size_t rounds) {
  const __m512 half = _mm512_set1_ps(0.5f);
  return spin(rounds, half, 2 * 16, [half](__m512 sum) { return _mm512_fmadd_ps(sum, half, half); });
}

}  // namespace modelflow::cpu
