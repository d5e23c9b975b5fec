// What becomes of the scores of attention before the softmax: soft cap, bias, masks, keys behind the query.
#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/launches/attention.h"

namespace modelflow::cuda {

template <class T>
struct Scores {
  const AttentionLaunch& a;
  std::int64_t mask_at, bias_at;  ///< of this batch and head

  __device__ Scores(const AttentionLaunch& launch, std::int64_t batch, std::int64_t head)
      : a(launch), mask_at(start(launch.mask, batch, head)), bias_at(start(launch.bias, batch, head)) {}

  __device__ float operator()(float score, std::int64_t row, std::int64_t key) const {
    score *= a.scale;
    if (a.softcap != 0) score = a.softcap * tanhf(score / a.softcap);
    if (a.causal && a.causal_first) score = hidden(score, row, key);
    if (a.bias.data && !a.bias_last) score += number(a.bias, bias_at, row, key);
    if (a.mask.data) score = masked(score, row, key);
    if (a.bias.data && a.bias_last) score += number(a.bias, bias_at, row, key);
    if (a.causal && !a.causal_first) score = hidden(score, row, key);
    return score;
  }

 private:
  __device__ static std::int64_t start(const ScorePlace& p, std::int64_t batch, std::int64_t head) {
    return p.data ? batch % p.batches * p.batch + head * p.head : 0;
  }
  __device__ static float number(const ScorePlace& p, std::int64_t at, std::int64_t row, std::int64_t key) {
    return static_cast<float>(static_cast<const T*>(p.data)[at + row * p.row + key * p.column]);
  }
  __device__ float hidden(float score, std::int64_t row, std::int64_t key) const {
    if (key <= row) return score;
    return a.causal_adds ? score + a.causal_number : a.causal_number;
  }
  __device__ float masked(float score, std::int64_t row, std::int64_t key) const {
    if (!a.boolean_mask) return score + number(a.mask, mask_at, row, key);
    const bool on = static_cast<const bool*>(a.mask.data)[mask_at + row * a.mask.row + key * a.mask.column];
    if (on ? a.true_replaces : a.false_replaces) return on ? a.mask_true : a.mask_false;
    if (a.true_replaces || a.false_replaces) return score;
    return score + (on ? a.mask_true : a.mask_false);
  }
};

}  // namespace modelflow::cuda
