#pragma once

#include <string_view>
#include <vector>

#include "modelflow/pass.h"

/// Edits that passes of several stages make.
namespace modelflow::passes {

/// Makes `op` with these inputs and attributes in front of `before`, typed, when some kernel of the target takes it;
/// else leaves the graph as it was, notes the refusal as a miss of `rule` and returns null.
Node* make_fused(Graph& graph, Context& context, std::string_view rule, std::string_view op, std::vector<Value*> inputs,
                 Attrs attrs, Node& before, std::size_t outputs = 1);

/// Gives the node a constant of its own with this content.
void set_constant(Node& node, std::size_t input, Tensor tensor);

}  // namespace modelflow::passes
