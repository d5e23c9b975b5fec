// Attention: where heads lie, and what becomes of scores before they are weights; of channels to channels, and of heads
// that are mixed.
#pragma once

#include "backends/cuda/launches.h"

namespace modelflow::cuda {

/// Where the rows of a head begin, in elements; the numbers of a row lie side by side.
struct HeadPlace {
  const void* data;
  std::int64_t batch, head, row;
};

/// A tensor that is read beside the scores, 0 where it repeats. Its batches begin anew after `batches`.
struct ScorePlace {
  const void* data;  ///< null where there is none
  std::int64_t batches, batch, head, row, column;
};

/// y = softmax(what becomes of scale * q k) v, as modelflow.Attention has it.
struct AttentionLaunch {
  Number number;
  std::int64_t batch, queries, keys;
  std::int32_t heads, group, depth, width;  ///< `group` query heads share keys and values
  HeadPlace q, k, v, y;
  float scale, softcap;
  bool causal, causal_adds, causal_first;
  float causal_number;
  ScorePlace mask, bias;
  bool boolean_mask, true_replaces, false_replaces, bias_last;
  float mask_true, mask_false;
  bool nan_guard;
  bool stops;                   ///< keys behind the query have no weight and need not be read
  bool tensor_cores;            ///< 16-bit numbers, heads of at most 128
  bool wide_q, wide_k, wide_v;  ///< may be moved 16 bytes at a time; the launcher sets them
};

/// Queries, keys, values and results whose heads lie side by side.
struct HeadsLaunch {
  Number number;
  std::int64_t batch, tokens, heads, size;
  HeadPlace q, k, v, y;
  float scale;
  bool tensor_cores;
};

/// Channels attend to channels, y = v softmax(scale * temperature * q^T k)^T for each head; with `normalize` queries
/// and keys are divided by their lengths over the tokens first. Tokens are shared out to `parts`, of `part` of them
/// each.
struct ChannelAttentionLaunch {
  HeadsLaunch heads;
  const void* temperature;  ///< by head; null: 1
  bool normalize;
  float shortest, longest;  ///< what lengths count as at least and at most
  std::int64_t parts, part;
  float* scores;         ///< [batch, heads, parts, size, size]
  float* squares;        ///< of the columns of queries, then of keys: [2, batch, heads, parts, size]
  void* weights;         ///< [batch, heads, size, row]
  std::int64_t row = 0;  ///< from one row of the weights to the next
};

/// y = (after softmax(before (scale * q k^T)) + bias) v, where both matrices mix the heads of each pair of tokens.
struct TalkingHeadsLaunch {
  HeadsLaunch heads;
  const void *before, *after;  ///< [heads, heads]
  const void* bias;            ///< by head; null: none
  float *scores, *mixed;       ///< [batch, heads, tokens, row]; in the end weights lie in the rows of `scores`
  std::int64_t row;
};

}  // namespace modelflow::cuda
