// The attributes and extents of Attention, QAttention and AttentionBf16.
#pragma once

#include <limits>

#include "backends/call_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

extern const FusedOp attention_op;

/// So many that those of queries, keys and values are counted together in 64 bits.
constexpr std::int64_t kMostHeads = std::numeric_limits<std::int32_t>::max();

/// The attributes of modelflow.Attention, read once and checked. Throws Error(invalid_input).
struct AttentionAttrs {
  explicit AttentionAttrs(const CallAttrs& attrs);

  /// BSH: [batch, sequence, heads * head_dim]; BNSH: [batch, heads, sequence, head_dim].
  enum class Layout { bsh, bnsh };
  std::int64_t heads = 1, kv_heads = 1;
  float scale = 1;
  float softcap = 0;  ///< c: scores become c * tanh(scores / c) before any mask (Gemma 2); 0: they stay
  bool causal = false, has_mask = false, nan_guard = false, packed = false;
  /// What becomes of the score of a key behind its query: this number, or it is added to it; before the masks see it,
  /// or after.
  float causal_number = 0;
  bool causal_adds = false, causal_first = false;
  bool boolean_mask = false;                           ///< the mask is boolean, and means one of two numbers
  float mask_true = 0, mask_false = 0;                 ///< these, which are added
  bool true_replaces = false, false_replaces = false;  ///< or one of them stands in place of the score
  bool has_bias = false, bias_last = false;            ///< numbers beside a boolean mask, added before it acts or after
  bool has_grid = false;  ///< keys lie in a grid: numbers for their rows and for their columns are added to the scores
  bool windows =
      false;  ///< the mask has the batches of one image, [windows, heads or 1, queries, keys], for all images
  std::int64_t head_dim = 0, value_dim = 0;  ///< where the body need not compute them; else 0
  Layout q = Layout::bsh, k = Layout::bsh, v = Layout::bsh, y = Layout::bsh;

  std::size_t mask_index() const { return packed ? 1 : 3; }
  std::size_t bias_index() const { return mask_index() + 1; }
  std::size_t grid_index() const { return mask_index() + has_mask + has_bias; }  ///< of rows; columns follow
  std::size_t inputs() const { return grid_index() + (has_grid ? 2 : 0); }
  /// The type of the operand at this index.
  DType type_of(std::size_t i) const {
    return boolean_mask && has_mask && i == mask_index() ? DType::boolean : DType::f32;
  }
};

/// What attributes that are not given are.
Attrs attention_defaults();

/// The extents of one attention as far as they are known.
struct AttentionDims {
  Dim batch, queries, keys, head_dim, value_dim;
};

/// Reads the extents off the operands; a no when operands or attributes contradict each other.
Verdict read_dims(const Call& call, const AttentionAttrs& attention, AttentionDims& dims);

/// Attributes that say sizes of heads, where they are known and a Reshape of the body needs them: ONNX Runtime writes
/// -1 for one that the body computes from an extent, and then refuses an empty batch.
Attrs attention_sizes(const Call& call);

/// The function body in standard ops of this opset (13 or later).
std::string attention_body(const Call& call, int opset);
/// The same of QAttention, whose products are of whole steps.
std::string qattention_body(const Call& call, int opset);
/// The same of AttentionBf16, whose products are of numbers in bfloat16.
std::string attention_bf16_body(const Call& call, int opset);

/// Samples of Attention: every layout, form of mask and grouping of heads once, on something small.
std::vector<Call> attention_samples();

}  // namespace modelflow::ops
