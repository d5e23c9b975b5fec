// Fuses what stands in front of Concats.
#include "passes/graph/stacks.h"

#include "passes/graph/facts.h"

namespace modelflow::passes {

int fuse_stacks(Graph& graph, Context& context, std::string_view rule, const std::function<Verdict(Node&)>& fuse) {
  int changes = 0;
  for (Node* stack : nodes_of(graph, {"Concat"})) {
    const Verdict verdict = fuse(*stack);
    if (!verdict && !verdict.reason.empty()) context.miss(rule, stack, verdict.reason);
    changes += verdict.ok;
  }
  graph.prune();
  if (changes) graph.sort();  // the last state may be read in front of where the results are stacked
  return changes;
}

}  // namespace modelflow::passes
