#pragma once

#include <string_view>
#include <vector>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// What the best kernels of two calls cost: that of `after` as a share of that of `before`, 0 where nothing takes
/// `before`; a no where nothing takes `after`.
struct CostShare {
  Verdict taken;
  double share = 0;
};
CostShare cost_share(const Call& before, const Call& after, const Target& target);

/// Puts `op` with these inputs and attributes in the place of `node`, where some kernel of the target takes it and is
/// faster than the one that `node` has; else leaves the graph as it was, notes the refusal as a miss of `rule` and
/// returns null.
Node* make_faster(Graph& graph, Context& context, std::string_view rule, std::string_view op,
                  std::vector<Value*> inputs, Attrs attrs, Node& node);

}  // namespace modelflow::passes
