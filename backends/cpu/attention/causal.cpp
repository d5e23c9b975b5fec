// Hidden keys of a causal attention: how large their scores can get, and the scores themselves.
#include "backends/cpu/attention/causal.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace modelflow::cpu {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

/// Rounding to few bits at most doubles a sum of sizes.
constexpr float kRounding = 2;

/// No score of this row is larger in size.
float bound_of_scores(const AttentionHead& h, const float* q) {
  float sums[8] = {}, sum = 0;  // side by side
  std::size_t i = 0;
  for (; i + 8 <= h.depth; i += 8)
    for (std::size_t j = 0; j < 8; ++j) sums[j] += std::abs(q[i + j]);
  for (; i < h.depth; ++i) sum += std::abs(q[i]);
  for (const float part : sums) sum += part;
  const float bound = kRounding * std::abs(h.scale) * sum * h.largest_key;
  if (!std::isfinite(bound)) return kInfinite;
  return h.cap != 0 ? std::min(bound, std::abs(h.cap)) : bound;
}

}  // namespace

HiddenScore hidden_score(const AttentionHead& h, std::size_t row) {
  // No weight is not nothing: times inf it is NaN.
  if (!std::isfinite(h.largest_value)) return {kInfinite, 0, false};
  const AttentionCausal& causal = h.causal;
  if (!causal.adds) return {causal.number, 0, causal.first};
  const float bound = bound_of_scores(h, h.q + row * h.q_row);
  if (bound == kInfinite) return {kInfinite, 0, false};
  if (causal.first) return {bound + causal.number, 0, true};
  return {bound, causal.number, true};
}

void hide(const AttentionHead& h, std::size_t row, std::size_t key, std::size_t n, float* scores) {
  const AttentionCausal& causal = h.causal;
  for (std::size_t j = row + 1 > key ? row + 1 - key : 0; j < n; ++j)
    scores[j] = causal.adds ? scores[j] + causal.number : causal.number;
}

}  // namespace modelflow::cpu
