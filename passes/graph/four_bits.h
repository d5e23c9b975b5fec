// Weights in 4 bits whose blocks share a scale.
#pragma once

#include <cstdint>
#include <functional>

#include "modelflow/tensor.h"

namespace modelflow::passes {

/// Weights in blocks of a column that share a scale: w = (step - 8) * scale, steps from 0 to 15.
struct FourBits {
  Tensor values;  ///< u8 [N, K / block, block / 2], the lower half of a byte first
  Tensor scales;  ///< f32 [N, K / block]
};

struct BlockedWeights {
  std::int64_t columns, depth, block;
};
/// FourBits::values of the steps that `step` gives for a column and a row.
Tensor packed_four_bits(const BlockedWeights& extents, const std::function<int(std::int64_t, std::int64_t)>& step);

/// `weights` is f32 [K, N], or [N, K] when `transposed`; K is a multiple of the even number `block`.
FourBits four_bits(const Tensor& weights, bool transposed, std::int64_t block);

}  // namespace modelflow::passes
