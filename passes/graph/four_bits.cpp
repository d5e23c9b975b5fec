// Weights rounded to 4 bits in blocks, and how their bits are packed.
#include "passes/graph/four_bits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace modelflow::passes {
namespace {

int step(float w, float scale) { return static_cast<int>(std::clamp(std::nearbyint(w / scale) + 8, 0.0f, 15.0f)); }

float squared_error(std::span<const float> block, float scale) {
  float sum = 0;
  for (const float w : block) {
    const float off = w - static_cast<float>(step(w, scale) - 8) * scale;
    sum += off * off;
  }
  return sum;
}

/// There are eight steps below 0 and seven above: the largest weight takes the side with eight, whatever its sign. A
/// little less than that often lies closer to the weights as a whole.
float scale_of(std::span<const float> block) {
  float largest = 0;
  for (const float w : block) {
    if (std::abs(w) > std::abs(largest)) largest = w;
  }
  if (!(std::abs(largest) >= 16 * std::numeric_limits<float>::min())) return 1;  // nothing but zeros
  float best = 0, least = std::numeric_limits<float>::max();
  for (const float steps : {-7.0f, -7.5f, -8.0f, -8.5f, -9.0f, -10.0f}) {
    if (const float error = squared_error(block, largest / steps); error < least) least = error, best = largest / steps;
  }
  return best;
}

}  // namespace

Tensor packed_four_bits(const BlockedWeights& extents, const std::function<int(std::int64_t, std::int64_t)>& step) {
  const Dims dims = {extents.columns, extents.depth / extents.block, extents.block / 2};
  return Tensor::make(DType::u8, dims, [&](std::byte* out) {
    for (std::int64_t column = 0; column < extents.columns; ++column)
      for (std::int64_t row = 0; row < extents.depth; row += 2)
        *out++ = static_cast<std::byte>(step(column, row) | step(column, row + 1) << 4);
  });
}

FourBits four_bits(const Tensor& weights, bool transposed, std::int64_t block) {
  const std::int64_t k = weights.dims()[transposed], n = weights.dims()[1 - transposed];
  const std::span<const float> from = weights.as<float>();
  const auto at = [&](std::int64_t column, std::int64_t row) {
    return from[static_cast<std::size_t>(transposed ? column * k + row : row * n + column)];
  };
  std::vector<float> scales, some(static_cast<std::size_t>(block));
  for (std::int64_t i = 0; i < n * k / block; ++i) {
    const std::int64_t column = i / (k / block), first = i % (k / block) * block;
    for (std::int64_t j = 0; j < block; ++j) some[static_cast<std::size_t>(j)] = at(column, first + j);
    scales.push_back(scale_of(some));
  }
  Tensor values = packed_four_bits({n, k, block}, [&](std::int64_t column, std::int64_t row) {
    return step(at(column, row), scales[static_cast<std::size_t>(column * (k / block) + row / block)]);
  });
  return {std::move(values), Tensor::of<float>({n, k / block}, std::span<const float>(scales))};
}

}  // namespace modelflow::passes
