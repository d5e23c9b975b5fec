// The attributes of TalkingHeads.
#pragma once

#include "backends/call_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

extern const FusedOp talking_heads_op;

/// The attributes of modelflow.TalkingHeads, read once and checked. Throws Error(invalid_input).
struct TalkingHeadsAttrs {
  explicit TalkingHeadsAttrs(const CallAttrs& attrs);

  std::int64_t heads = 1;
  std::int64_t head_dim = 0;  ///< where the body need not compute it, as of Attention; else 0
  float scale = 1;
  bool packed = false;    ///< one operand holds all queries, then all keys, then all values
  bool has_bias = false;  ///< a number for each head, added to its weights once they are mixed

  std::size_t operands() const { return packed ? 1 : 3; }
  /// [heads, heads] each: scores, and weights, of a head from those of all.
  std::size_t before_index() const { return operands(); }
  std::size_t after_index() const { return operands() + 1; }
  std::size_t bias_index() const { return operands() + 2; }
  std::size_t inputs() const { return operands() + 2 + has_bias; }
};

}  // namespace modelflow::ops
