// Which of some words is nearest to another one, by edit distance.
#include "src/core/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace modelflow {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view text, std::span<const std::string> candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const bool prefix = text.size() >= 3 && candidate.starts_with(text);
    const std::size_t distance = prefix ? 1 : edit_distance(text.substr(0, 100), candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view text, std::span<const std::string> candidates) {
  const std::string best = nearest(text, candidates);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

}  // namespace modelflow
