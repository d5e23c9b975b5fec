// Attention over heads that lie side by side in the last axis of [batch, tokens, channels].
#pragma once

#include <set>
#include <vector>

#include "passes/fuse/attention_heads.h"
#include "passes/fuse/attention_pack.h"

namespace modelflow::passes {

/// A product of two operands of rank 4 that are computed.
bool is_product_of_heads(const Node& node);

/// The readings of such heads of known size; `transposed`: as read_heads has it.
std::vector<Heads> heads_side_by_side(Value& value, bool transposed);

/// What a fused attention in front of `end` reads: one packed value, or queries, keys and values of the same extents as
/// they are. Empty, with the reason, where there is no such thing. `attention`: the nodes that it stands for.
std::vector<Value*> flat_operands(const Operands& operands, std::set<const Node*> attention, Node& end,
                                  Context& context, std::string& why);

}  // namespace modelflow::passes
