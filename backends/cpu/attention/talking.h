// Loops of talking heads.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

/// to[g, j] = the sum over h of weights[g, h] * from[h, j], and bias[g]: the scores of one query, a row for each head.
struct HeadMixing {
  std::size_t heads = 0, n = 0;
  const float *weights = nullptr, *bias = nullptr;  ///< [heads, heads]; [heads] or null
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t plane = 0;  ///< floats from head to head
};

/// Written once in talking_loops.h; each only where the machine has the instructions.
void mix_heads_avx2(const HeadMixing& mixing);
void mix_heads_avx512(const HeadMixing& mixing);

}  // namespace modelflow::cpu
