// Whether products of neighbouring weights with unsigned bytes add up in 16 bits.
#include "src/core/bounded_pairs.h"

#include <algorithm>

namespace modelflow {

bool bounded_pair(int a, int b) {
  return std::max(a, 0) + std::max(b, 0) <= kMostInPair && std::min(a, 0) + std::min(b, 0) >= -kMostInPair;
}

bool bounded_pairs(std::span<const std::int8_t> b, std::size_t columns, bool transposed) {
  const std::size_t depth = b.size() / columns, across = transposed ? depth : 1, down = transposed ? 1 : columns;
  for (std::size_t i = 0; i + 1 < depth; i += 2)
    for (std::size_t j = 0; j < columns; ++j)
      if (!bounded_pair(b[i * down + j * across], b[(i + 1) * down + j * across])) return false;
  return true;
}

}  // namespace modelflow
