// Masks brought to the axes of modelflow.Attention.
#pragma once

#include "modelflow/pass.h"

namespace modelflow::passes {

/// Brings masks to the axes that modelflow.Attention knows, [batch, heads, queries, keys], each of them the scores' own
/// or 1. Only a batch may be larger than that of the scores, and rows where there is one query: the op repeats those.
class MaskAligner {
 public:
  MaskAligner(std::int64_t heads, Build& build) : heads_(heads), build_(build) {}

  /// `value` is combined with scores of this shape. A no where it would make more of them than the op does.
  Verdict align(Value*& value, const Shape& scores);

  std::int64_t heads() const { return heads_; }
  bool windows() const { return windows_; }      ///< some mask differs from window to window (Swin)
  bool per_batch() const { return per_batch_; }  ///< some mask differs from batch to batch
  bool more_rows() const { return more_rows_; }  ///< some mask may have many rows where there is one query

 private:
  Verdict split_heads(Value*& value, const Shape& shape, const Shape& scores);
  Verdict join_windows(Value*& value, const Shape& shape, const Shape& scores);
  Value& ints(const Ints& list);

  std::int64_t heads_;
  Build& build_;
  bool windows_ = false, per_batch_ = false, more_rows_ = false;
};

}  // namespace modelflow::passes
