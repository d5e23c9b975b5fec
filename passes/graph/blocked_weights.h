// Weights in 4 or 8 bits whose blocks share a scale.
#pragma once

#include <cstdint>
#include <functional>

#include "modelflow/tensor.h"

namespace modelflow::passes {

/// How weights of a product, [depth, columns], are cut: `block` numbers of a column share a scale.
struct Blocks {
  std::int64_t block = 32;
  int bits = 4;               ///< 4 or 8
  DType scales = DType::f32;  ///< what scales are kept in
  /// The step that stands for 0; there are as many below it, and one less above.
  int middle() const { return 1 << (bits - 1); }
};

/// w = (step - middle) * scale.
struct BlockedWeights {
  Tensor values;  ///< u8 [columns, depth / block, block * bits / 8], of 4 bits the lower half of a byte first
  Tensor scales;  ///< [columns, depth / block]
};

/// BlockedWeights::values of the steps that `step` gives for a column and a row.
Tensor packed_steps(std::int64_t columns, std::int64_t depth, const Blocks& blocks,
                    const std::function<int(std::int64_t, std::int64_t)>& step);

/// `weights` is f32 [K, N], or [N, K] when `transposed`; K is a multiple of the block.
BlockedWeights blocked_weights(const Tensor& weights, bool transposed, const Blocks& blocks);

}  // namespace modelflow::passes
