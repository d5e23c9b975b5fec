// What the kernels of two calls cost, and the node of the cheaper one.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

#include "modelflow/pass.h"
#include "passes/graph/extents.h"

namespace modelflow::passes {

/// Seconds that the best kernels of two calls take: endless where nothing takes `before`; a no where nothing takes
/// `after`. Empty operands may cost 0 in both.
struct Costs {
  Verdict taken;
  double before = std::numeric_limits<double>::infinity(), after = 0;
};
Costs costs_of(const Call& before, const Call& after, const Target& target);

/// Puts `op` with these inputs and attributes in the place of `node`, where some kernel of the target takes it and is
/// faster at typical sizes than the one that `node` has (both on floats of 16 bits, where values become that); else
/// leaves the graph as it was, notes the refusal as a miss of `rule` and returns null.
Node* make_faster(Graph& graph, Context& context, std::string_view rule, std::string_view op,
                  std::vector<Value*> inputs, Attrs attrs, Node& node, TypicalSizes& sizes);

}  // namespace modelflow::passes
