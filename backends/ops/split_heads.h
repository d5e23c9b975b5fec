// Heads of attention that lie side by side in the channels of their operands: the text that takes them apart, and their
// extents.
#pragma once

#include <string>

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// Numbers that bodies of such ops begin with: one, two, copied ({0, 0}), n (heads), and head_dim where it is known.
std::string head_numbers_text(bool head_dim);

/// x [batch, tokens, heads * size] -> x_split, [batch, tokens, heads, size], behind head_numbers_text(). A size without
/// a name is computed.
std::string split_heads_text(const std::string& x, const std::string& count, std::string size);

/// What operands of one call have in common.
struct HeadExtents {
  Dim batch, tokens, size;
};
/// Joins what one operand of `heads` heads says to what the others did; a no where they contradict each other.
Verdict join_extents(const Operand& x, std::int64_t heads, HeadExtents& extents);

/// The same of a run: `row` numbers from token to token of its operands, `size` of them a head's.
struct HeadSizes {
  std::int64_t batch, tokens, row, size;
};
/// Of the first operand, which holds queries, keys and values where it is `packed`, else of the first three. Throws
/// Error(invalid_input) in the name of `op` where they do not fit.
HeadSizes head_sizes(const std::string& op, const Invocation& call, std::int64_t heads, bool packed);

}  // namespace modelflow::ops
