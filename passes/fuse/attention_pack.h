// Queries, keys and values as one packed value.
#pragma once

#include <set>

#include "modelflow/pass.h"
#include "passes/fuse/attention_heads.h"

namespace modelflow::passes {

/// Queries, keys and values of one attention, each as read by one of its candidates.
struct Operands {
  const Heads *q, *k, *v;
};

/// One value [batch, sequence, (N + 2K) * size] with all queries, then all keys, then all values: what is there
/// already, or the result of one linear layer in place of those that made the operands, its columns in that order.
/// Null, with the reason, when there is no such thing. `gone`: nodes that the fused attention leaves without readers.
Value* pack(const Operands& operands, const std::set<const Node*>& gone, Node& before, Context& context,
            std::string& why);

}  // namespace modelflow::passes
