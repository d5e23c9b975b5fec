// Which keys of a causal attention may be left out. A key is hidden by a low number and not removed: where all
// that a row sees is as low (padding in front of a text), the hidden keys have weight again. Kernels compute what a row
// sees, ask whether the rest matters, and where it does they compute the rows again, with all keys.
#pragma once

#include "backends/cpu/attention/attention.h"

namespace modelflow::cpu {

/// A score this much below the largest of its row has no weight: exponentials are 0 from 87 on.
inline constexpr float kNoWeight = 88;

/// No score of a hidden key of a row is larger than what the mask makes of `score`, or than `score` where the mask has
/// no part in it, plus `plus`. +inf: they matter whatever the row sees.
struct HiddenScore {
  float score = 0, plus = 0;
  bool masked = false;
};
HiddenScore hidden_score(const AttentionHead& head, std::size_t row);

/// Makes the scores of `n` keys from `key` on, which lie at `scores`, what they are where they are behind this row.
void hide(const AttentionHead& head, std::size_t row, std::size_t key, std::size_t n, float* scores);

namespace {

/// Whether keys that this row has not computed have weight, the largest score that it has computed being `seen`.
/// `mask_top(mask, score, n)` is the most that the mask makes of a score over n keys, +inf where it makes NaN of it.
template <class MaskTop>
inline __attribute__((always_inline)) bool hidden_matters(const AttentionHead& head, std::size_t row, float seen,
                                                          MaskTop mask_top) {
  if (!head.causal.on || head.whole || row + 1 >= head.keys) return false;
  const HiddenScore hidden = hidden_score(head, row);
  float top = hidden.score;
  if (hidden.masked && head.mask) top = mask_top(head.mask.from(row, row + 1), top, head.keys - row - 1);
  top += hidden.plus;
  return top != -__builtin_inff() && !(seen - top > kNoWeight);
}

}  // namespace
}  // namespace modelflow::cpu
