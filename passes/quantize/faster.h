#pragma once

#include <string_view>
#include <vector>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// Puts `op` with these inputs and attributes in the place of `node`, where some kernel of the target takes it and is
/// faster than the one that `node` has; else leaves the graph as it was, notes the refusal as a miss of `rule` and
/// returns null.
Node* make_faster(Graph& graph, Context& context, std::string_view rule, std::string_view op,
                  std::vector<Value*> inputs, Attrs attrs, Node& node);

}  // namespace modelflow::passes
