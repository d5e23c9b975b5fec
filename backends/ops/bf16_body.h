#pragma once

#include <string>

#include "backends/ops.h"

namespace modelflow::ops {

/// The body of a float32 op behind `casts`, which bring its operands out of bfloat16. Throws Error(unsupported) below
/// the opset whose Cast knows it.
std::string body_behind(const std::string& casts, const FusedOp& op, const Call& call, int opset);

}  // namespace modelflow::ops
