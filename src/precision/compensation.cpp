// Weights rounded one row after the other, each making up for the errors before it.
#include "src/precision/compensation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/core/bounded_pairs.h"
#include "src/precision/eigen.h"

namespace modelflow {
namespace {

constexpr float kDamping = 0.01F;  // of the mean square of a feature
constexpr float kMostDamping = 1;
constexpr Eigen::Index kBlock = 64;  // rows whose errors are passed on to all rows before them together

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Eigen::Index;

/// `scale` may be what nothing can be divided by; `beside` is what the neighbour came to, or 0.
float step(float x, float scale, int beside, const Grid& grid) {
  const float steps = std::nearbyint(x / scale);
  if (std::isnan(steps)) return 0;
  const int least = std::max(grid.least, -kMostInPair - std::min(beside, 0)),
            most = std::min(grid.most, kMostInPair - std::max(beside, 0));
  return std::clamp(steps, static_cast<float>(least), static_cast<float>(most));
}

}  // namespace

std::optional<Compensation> Compensation::of(const Moments& moments, std::size_t depth) {
  const auto n = static_cast<Index>(depth);
  const Eigen::Map<const Matrix> seen(moments.data(), n, n);
  const double mean = seen.diagonal().cast<double>().mean();
  if (!(mean > 0)) return {};
  Compensation made;
  made.order_.resize(depth);
  std::iota(made.order_.rbegin(), made.order_.rend(), 0);
  std::ranges::stable_sort(made.order_, {}, [&](std::size_t k) { return moments[k * depth + k]; });
  made.factors_.resize(depth * depth);
  Eigen::Map<Matrix> factors(made.factors_.data(), n, n);
  for (float damping = kDamping; damping <= kMostDamping; damping *= 10) {
    factors = seen(made.order_, made.order_);
    factors.diagonal().array() += damping * static_cast<float>(mean);
    const Eigen::LLT<Eigen::Ref<Matrix>> cholesky(factors);  // in its place
    if (cholesky.info() != Eigen::Success || !factors.diagonal().allFinite()) continue;
    for (Index i = 0; i < n; ++i)
      factors.row(i).tail(n - i - 1) = factors.col(i).tail(n - i - 1).transpose() / factors(i, i);
    return made;
  }
  return {};
}

std::vector<std::int8_t> Compensation::steps(std::span<const float> weights, const Grid& grid) const {
  const auto depth = static_cast<Index>(order_.size()), columns = static_cast<Index>(weights.size()) / depth;
  const std::size_t blocks = order_.size() / grid.block;
  const Eigen::Map<const Matrix> factors(factors_.data(), depth, depth), w(weights.data(), depth, columns);
  std::vector<std::int8_t> steps(weights.size());
  Matrix errors(depth, columns), wanted = Matrix::Zero(depth, columns);  // rows in order_
  for (Index end = depth; end > 0; end -= std::min(end, kBlock)) {
    const Index begin = std::max<Index>(0, end - kBlock);
    for (Index i = end; i-- > begin;) {
      const Index later = end - i - 1;
      wanted.row(i) += factors.row(i).segment(i + 1, later) * errors.middleRows(i + 1, later);
      const std::size_t k = order_[static_cast<std::size_t>(i)], neighbour = k ^ 1;
      const bool bounded = grid.bounded_pairs && neighbour < order_.size();
      for (Index c = 0; c < columns; ++c) {
        const float weight = w(static_cast<Index>(k), c);
        const float scale = grid.scales[static_cast<std::size_t>(c) * blocks + k / grid.block];
        const int beside =
            bounded ? steps[neighbour * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c)] : 0;
        const float rounded = step(weight + wanted(i, c), scale, beside, grid);
        errors(i, c) = weight - rounded * scale;
        steps[k * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c)] = static_cast<std::int8_t>(rounded);
      }
    }
    wanted.topRows(begin) += factors.block(0, begin, begin, end - begin) * errors.middleRows(begin, end - begin);
  }
  return steps;
}

}  // namespace modelflow
