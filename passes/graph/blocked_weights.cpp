// Weights rounded to 4 or 8 bits in blocks, and how their bits are packed.
#include "passes/graph/blocked_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/core/half.h"

namespace modelflow::passes {
namespace {

int step(float w, float scale, int middle) {
  const auto around = static_cast<float>(middle);
  return static_cast<int>(std::clamp(std::nearbyint(w / scale) + around, 0.0f, 2 * around - 1));
}

float squared_error(std::span<const float> block, float scale, int middle) {
  float sum = 0;
  for (const float w : block) {
    const float off = w - static_cast<float>(step(w, scale, middle) - middle) * scale;
    sum += off * off;
  }
  return sum;
}

/// A number as scales are kept.
float kept(float scale, DType type) {
  if (type == DType::f16) return from_f16(to_f16(scale));
  return type == DType::bf16 ? from_bf16(to_bf16(scale)) : scale;
}

/// There is one step more below 0 than above: the largest weight takes that side, whatever its sign. A little less than
/// that often lies closer to the weights as a whole.
float scale_of(std::span<const float> block, const Blocks& blocks) {
  float largest = 0;
  for (const float w : block) {
    if (std::abs(w) > std::abs(largest)) largest = w;
  }
  const auto steps = static_cast<float>(blocks.middle());
  float best = 1, least = std::numeric_limits<float>::max();  // 1: nothing but zeros, or as good as that
  if (!(std::abs(largest) >= 2 * steps * std::numeric_limits<float>::min())) return best;
  for (const float share : {0.875f, 0.9375f, 1.0f, 1.0625f, 1.125f, 1.25f}) {
    const float scale = kept(largest / (-steps * share), blocks.scales);
    if (scale == 0) continue;
    if (const float error = squared_error(block, scale, blocks.middle()); error < least) least = error, best = scale;
  }
  return best;
}

}  // namespace

Tensor packed_steps(std::int64_t columns, std::int64_t depth, const Blocks& blocks,
                    const std::function<int(std::int64_t, std::int64_t)>& step) {
  const Dims dims = {columns, depth / blocks.block, blocks.block * blocks.bits / 8};
  return Tensor::make(DType::u8, dims, [&](std::byte* out) {
    const std::int64_t each = 8 / blocks.bits;
    for (std::int64_t column = 0; column < columns; ++column)
      for (std::int64_t row = 0; row < depth; row += each)
        *out++ = static_cast<std::byte>(step(column, row) | (each == 2 ? step(column, row + 1) << 4 : 0));
  });
}

BlockedWeights blocked_weights(const Tensor& weights, bool transposed, const Blocks& blocks) {
  const std::int64_t n = weights.dims()[1 - transposed], k = weights.dims()[transposed], count = k / blocks.block;
  const std::span<const float> from = weights.as<float>();
  const auto at = [&](std::int64_t column, std::int64_t row) {
    return from[static_cast<std::size_t>(transposed ? column * k + row : row * n + column)];
  };
  std::vector<float> scales, some(static_cast<std::size_t>(blocks.block));
  for (std::int64_t i = 0; i < n * count; ++i) {
    for (std::int64_t j = 0; j < blocks.block; ++j)
      some[static_cast<std::size_t>(j)] = at(i / count, i % count * blocks.block + j);
    scales.push_back(scale_of(some, blocks));
  }
  Tensor values = packed_steps(n, k, blocks, [&](std::int64_t column, std::int64_t row) {
    return step(at(column, row), scales[static_cast<std::size_t>(column * count + row / blocks.block)],
                blocks.middle());
  });
  const Tensor as_floats = Tensor::of<float>({n, count}, std::span<const float>(scales));
  return {std::move(values), blocks.scales == DType::f32 ? as_floats : to_half(as_floats, blocks.scales)};
}

}  // namespace modelflow::passes
