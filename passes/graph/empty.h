// Nodes that refuse empty tensors.
#pragma once

#include "modelflow/graph.h"

namespace modelflow::passes {

/// A Reshape to a constant that refuses empty tensors as it is: no loss if what comes in its place does so, too.
bool fails_when_empty(const Node& node);
/// The same where it is this extent that is 0: one that the target copies.
bool fails_without(const Node& node, const Dim& extent);

}  // namespace modelflow::passes
