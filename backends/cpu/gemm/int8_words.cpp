// Packs weights in words for products of 8-bit numbers.
#include "backends/cpu/gemm/int8_words.h"

#include <algorithm>
#include <cstring>

namespace modelflow::cpu {

void WordPanels::pack(const std::int8_t* b, bool transposed, std::size_t k, std::size_t n, std::byte* out) const {
  const std::size_t bytes = columns * depth(k), across = transposed ? k : 1, down = transposed ? 1 : n;
  auto* sums = reinterpret_cast<std::int32_t*>(out + count(n) * bytes);
  std::memset(out, 0, count(n) * columns * (depth(k) + sizeof(std::int32_t)));
  for (std::size_t panel = 0; panel < count(n); ++panel) {
    auto* to = reinterpret_cast<std::int8_t*>(out + panel * bytes);
    const std::size_t first = panel * columns, here = std::min(columns, n - first);
    for (std::size_t i = 0; i < k; ++i) {
      const std::int8_t* from = b + first * across + i * down;
      std::int8_t* word = to + i / steps * steps * columns + i % steps;
      for (std::size_t j = 0; j < here; ++j) {
        word[j * steps] = from[j * across];
        sums[first + j] += from[j * across];
      }
    }
  }
}

}  // namespace modelflow::cpu
