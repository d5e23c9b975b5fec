// ONNX text of the two products of attention in low precision: on 8-bit integers ("steps" of a scale) with 32-bit sums,
// which is what QAttention adds to Attention, and on bfloat16 with float32 sums, which AttentionBf16 adds.
#pragma once

#include <string>

namespace modelflow::ops {

/// `scores` = `scale` q k^T. Rows of q and of k, [batch, heads, sequence, head_dim], are in steps of a 127th of their
/// largest element each.
std::string step_scores_text(int opset, const std::string& q, const std::string& k, const std::string& scale);

/// `y` = softmax(scores) v. Exponentials lie in [0, 1] whatever the data, so that their steps are 255ths; a row is
/// divided by the sum of its steps. Columns of v are in steps of a 127th of their largest element each. `guard`: rows
/// that have no softmax are 0, not NaN.
std::string step_weights_text(int opset, const std::string& scores, const std::string& v, bool guard,
                              const std::string& y);

/// The same of `q` `scale` and k rounded to bfloat16.
std::string bf16_scores_text(const std::string& q, const std::string& k, const std::string& scale);

/// The same of exponentials and v rounded to bfloat16; a row is divided by the sum of what is left of them.
std::string bf16_weights_text(int opset, const std::string& scores, const std::string& v, bool guard,
                              const std::string& y);

}  // namespace modelflow::ops
