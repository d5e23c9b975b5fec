// Rounding that keeps the error of a product small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/precision/moments.h"

namespace modelflow {

/// The numbers that weights [depth, columns] may take: whole multiples of a scale, which the rows of a block share.
struct Grid {
  std::span<const float> scales;  ///< [columns, depth / block]
  std::size_t block;
  int least, most;
  /// The steps are to be bounded_pairs (src/core/bounded_pairs.h).
  bool bounded_pairs = false;
};

/// Rounding that keeps the error of a product small, |X(W - W')|, not that of each weight (Frantar et al., "GPTQ",
/// 2022): the weights of one row of W after another are rounded, and those that are still to come move by what makes up
/// best for the errors so far, given how the columns of X go together.
///
/// With H = X^T X = M^T M and M lower triangular, entry i of M e is the sum over j <= i of M_ij e_j. Taking rows in
/// order, it is least when w_i plus the sum over j < i of M_ij / M_ii e_j is what gets rounded; so M is all that is
/// needed.
class Compensation {
 public:
  /// None where X was 0 throughout. `moments` is [depth, depth] and finite; directions of which X says little (fewer
  /// samples than rows, features that are always 0) are held by a hundredth of the mean of its diagonal.
  static std::optional<Compensation> of(const Moments& moments, std::size_t depth);

  /// Steps of `weights`, both [depth, columns].
  std::vector<std::int8_t> steps(std::span<const float> weights, const Grid& grid) const;

 private:
  std::vector<std::size_t> order_;  // features, the last is rounded first
  std::vector<float> factors_;      // [depth, depth]: M_ij / M_ii, places in order_, above the diagonal
};

}  // namespace modelflow
