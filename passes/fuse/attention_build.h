// From an attention as it was found to the fused op.
#pragma once

#include <functional>

#include "passes/fuse/attention_heads.h"
#include "passes/fuse/attention_scores.h"

namespace modelflow::passes {

/// An attention as it was found, before its form is chosen.
struct Attention {
  Node* end = nullptr;                        ///< computes the result: weights V
  std::set<const Node*> nodes;                ///< that have no use without it
  std::vector<Heads> q = {}, k = {}, v = {};  ///< all ways to read the operands
  bool nan_guard = false;
  bool flat = false;    ///< `end` gives [batch, sequence, heads * size], else [batch, heads, sequence, size]
  bool turned = false;  ///< or [batch, heads, size, sequence]
  std::function<Verdict(std::int64_t heads, Masking&)> masking = {};
};

/// Puts modelflow.Attention in its place: packed where the operands allow it, else with the operands that leave the
/// fewest nodes. A no with the reason; with an empty one when it is reported already.
Verdict build_attention(Attention attention, Context& context);

}  // namespace modelflow::passes
