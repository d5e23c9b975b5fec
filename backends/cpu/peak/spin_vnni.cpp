// Products of 8-bit numbers on VNNI.
#include <immintrin.h>

#include "backends/cpu/peak/spin.h"

namespace modelflow::cpu {

double spin_vnni(std::size_t rounds) {
  const __m512i ones = _mm512_set1_epi8(1);
  return spin(rounds, ones, 2 * 64, [ones](__m512i sum) { return _mm512_dpbusd_epi32(sum, ones, ones); });
}

}  // namespace modelflow::cpu
