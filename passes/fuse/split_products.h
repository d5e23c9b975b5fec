// Products whose columns go separate ways.
#pragma once

#include "modelflow/pass.h"
#include "passes/fuse/attention_heads.h"

namespace modelflow::passes {

/// Makes each part that is read of `y`, a product with constant weights, a product of its own: Split or Slice of its
/// last axis, and heads that Reshape, Transpose and Gather tell apart. False, and nothing has changed, where `y` is no
/// such product, is read as a whole, or has a part of fewer columns than `least`.
bool split_product(Value& y, std::size_t least, Context& context);

/// The same, however narrow the parts are, of the projection that an operand of attention is a part of, by one of the
/// ways to read its heads: they are read where their own projection leaves them then.
bool split_packed(const std::vector<Heads>& ways, Context& context);

}  // namespace modelflow::passes
