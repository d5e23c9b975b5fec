#include "src/calibrate/compensation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace modelflow {
namespace {

constexpr float kDamping = 0.01F;  // of the mean square of a feature
constexpr float kMostDamping = 1;
constexpr std::size_t kPanel = 8;   // rows that pass over the finished ones together
constexpr std::size_t kLanes = 32;  // columns of weights at a time: their errors stay in the cache
using Lanes = std::array<float, kLanes>;

/// Sums over a constant number of lanes are what compilers vectorise.
float dot(const float* a, const float* b, std::size_t count) {
  Lanes lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += a[i + j] * b[i + j];
  for (; i < count; ++i) lanes[0] += a[i] * b[i];
  return std::accumulate(lanes.begin(), lanes.end(), 0.0F);
}

/// Cholesky's L of a symmetric matrix, in its place; false when it is not positive definite.
bool factor(std::vector<float>& matrix, std::size_t n) {
  const auto row = [&](std::size_t i) { return matrix.data() + i * n; };
  for (std::size_t first = 0; first < n; first += kPanel) {
    const std::size_t last = std::min(first + kPanel, n);
    for (std::size_t j = 0; j < last; ++j)
      for (std::size_t i = std::max(first, j); i < last; ++i) {
        const float rest = row(i)[j] - dot(row(i), row(j), j);
        if (i != j)
          row(i)[j] = rest / row(j)[j];
        else if (rest > 0)
          row(j)[j] = std::sqrt(rest);
        else
          return false;
      }
  }
  return true;
}

/// What the later rows add to each earlier one, from L: its columns divided by their diagonal, turned.
void turn(std::vector<float>& matrix, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) matrix[i * n + j] = matrix[j * n + i] / matrix[i * n + i];
}

/// `scale` may be what nothing can be divided by.
float step(float x, float scale, const Grid& grid) {
  const float steps = std::nearbyint(x / scale);
  if (std::isnan(steps)) return 0;
  return std::clamp(steps, static_cast<float>(grid.least), static_cast<float>(grid.most));
}

}  // namespace

std::optional<Compensation> Compensation::of(const Moments& moments, std::size_t depth) {
  double mean = 0;
  for (std::size_t k = 0; k < depth; ++k) mean += moments[k * depth + k] / static_cast<double>(depth);
  if (!(mean > 0)) return {};
  Compensation made;
  made.order_.resize(depth);
  std::iota(made.order_.rbegin(), made.order_.rend(), 0);
  std::ranges::stable_sort(made.order_, {}, [&](std::size_t k) { return moments[k * depth + k]; });
  for (float damping = kDamping; damping <= kMostDamping; damping *= 10) {
    made.factors_.resize(depth * depth);
    for (std::size_t i = 0; i < depth; ++i) {
      const float* from = moments.data() + made.order_[i] * depth;
      for (std::size_t j = 0; j <= i; ++j) made.factors_[i * depth + j] = from[made.order_[j]];
      made.factors_[i * depth + i] += damping * static_cast<float>(mean);
    }
    if (!factor(made.factors_, depth)) continue;
    turn(made.factors_, depth);
    return made;
  }
  return {};
}

std::vector<std::int8_t> Compensation::steps(std::span<const float> weights, const Grid& grid) const {
  const std::size_t depth = order_.size(), columns = weights.size() / depth, blocks = depth / grid.block;
  std::vector<std::int8_t> steps(weights.size());
  std::vector<Lanes> errors(depth);
  for (std::size_t first = 0; first < columns; first += kLanes) {
    const std::size_t count = std::min(kLanes, columns - first);
    for (std::size_t i = depth; i-- > 0;) {
      const std::size_t k = order_[i];
      const float* factors = factors_.data() + i * depth;
      Lanes wanted{};
      for (std::size_t j = i + 1; j < depth; ++j)
        for (std::size_t c = 0; c < kLanes; ++c) wanted[c] += factors[j] * errors[j][c];
      errors[i] = {};
      for (std::size_t c = 0; c < count; ++c) {
        const float w = weights[k * columns + first + c];
        const float scale = grid.scales[(first + c) * blocks + k / grid.block];
        const float rounded = step(w + wanted[c], scale, grid);
        errors[i][c] = w - rounded * scale;
        steps[k * columns + first + c] = static_cast<std::int8_t>(rounded);
      }
    }
  }
  return steps;
}

}  // namespace modelflow
