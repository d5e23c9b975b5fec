// Attention: where heads lie, and what becomes of scores before they are weights.
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

}  // namespace modelflow::cuda
