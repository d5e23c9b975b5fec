// The standard op Attention as the fused one.
#pragma once

#include "modelflow/pass.h"

namespace modelflow::passes {

/// The standard Attention (opset 23 and later) -> modelflow.Attention, with what it keeps of earlier keys and values; a
/// no with the reason where the fused op does not mean the same.
Verdict fuse_standard_attention(Node& node, Context& context);

}  // namespace modelflow::passes
