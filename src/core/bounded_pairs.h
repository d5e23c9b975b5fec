// Weights of 8 bits whose products add up in 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace modelflow {

/// What two neighbours may add up to in one sign so that the sum of their products with unsigned bytes, 255 at most,
/// fits in 16 bits.
constexpr int kMostInPair = 128;

bool bounded_pair(int a, int b);
/// Whether all neighbours along the depth are, the first in an even row: of B [depth, columns], or of its transpose
/// [columns, depth]. columns > 0.
bool bounded_pairs(std::span<const std::int8_t> b, std::size_t columns, bool transposed);

}  // namespace modelflow
