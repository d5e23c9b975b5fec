// Concats of the results of written out steps.
#pragma once

#include <functional>
#include <string_view>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// Gives every Concat to `fuse`, whose noes with a reason are misses of `rule`, and puts the graph in order again; how
/// many it took.
int fuse_stacks(Graph& graph, Context& context, std::string_view rule, const std::function<Verdict(Node&)>& fuse);

}  // namespace modelflow::passes
