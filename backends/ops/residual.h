// What products and convolutions do with an operand of the shape of their result: the attribute `residual`.
#pragma once

#include "backends/call_attrs.h"

namespace modelflow::ops {

/// Added before the activation, added after it, multiplied after it.
enum class Residual { none, before, after, times };

/// Throws Error(invalid_input) where the attribute says something else.
Residual residual_of(const CallAttrs& attrs);

}  // namespace modelflow::ops
