// The attributes of ChannelAttention and the extents of its operands.
#pragma once

#include "backends/call_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

extern const FusedOp channel_attention_op;

/// The attributes of modelflow.ChannelAttention, read once and checked. Throws Error(invalid_input).
struct ChannelAttentionAttrs {
  explicit ChannelAttentionAttrs(const CallAttrs& attrs);

  std::int64_t heads = 1;
  std::int64_t head_dim = 0;  ///< where the body need not compute it, as of Attention; else 0
  float scale = 1;
  float epsilon = 0;       ///< lengths below it count as it
  bool normalize = false;  ///< queries and keys are divided by their lengths first
  bool clips = false;      ///< lengths are bounded by a Clip: in ONNX Runtime the largest float for infinity
  bool packed = false;     ///< one operand holds all queries, then all keys, then all values
  bool has_temperature = false;

  std::size_t inputs() const { return (packed ? 1u : 3u) + has_temperature; }
  std::size_t temperature_index() const { return packed ? 1 : 3; }
};

}  // namespace modelflow::ops
