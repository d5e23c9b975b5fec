// Softmax between two products, and the standard Attention -> modelflow.Attention. What the products read is followed
// back through whatever only moves elements, down to the projections; three projections of one input become one.
#include "modelflow/modelflow.h"
#include "passes/fuse/attention_build.h"
#include "passes/fuse/attention_standard.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// Images and windows of operands of rank 5 become one batch, so none may be repeated for another's.
bool same_windows(const Core& core) {
  const Shape &q = core.scores->input(0)->shape(), &k = core.scores->input(1)->shape(), &v = core.values->shape();
  const auto same = [&](std::size_t axis) { return !q[axis].unknown() && q[axis] == k[axis] && q[axis] == v[axis]; };
  return (q.rank() != 5 && v.rank() != 5) || (q.rank() == v.rank() && same(0) && same(1));
}

/// What stands around a Softmax.
Verdict fuse_products(Node& softmax, Context& context) {
  Core core;
  if (Verdict v = read_core(softmax, core); !v) return v;
  if (!same_windows(core)) return no("queries, keys and values have unlike windows", core.scores->output()->name());
  Attention found{.end = core.context, .nodes = core.nodes, .nan_guard = core.nan_guard, .turned = core.turned};
  found.q = read_heads(*core.scores->input(0), false);
  found.k = read_heads(*core.scores->input(1), true);
  found.v = read_heads(*core.values, core.turned);
  found.masking = [&](std::int64_t heads, Masking& masking) {
    return make_mask(core, heads, *core.context, context, masking);
  };
  return build_attention(std::move(found), context);
}

int run(Graph& graph, Context& context) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    if (node->output() && (node->is("Softmax") || node->is("Attention"))) nodes.push_back(node.get());
  const std::uint64_t version = graph.version();
  int changes = 0;
  for (Node* node : nodes) {
    const Verdict verdict =
        node->is("Softmax") ? fuse_products(*node, context) : fuse_standard_attention(*node, context);
    if (verdict) ++changes;
    if (!verdict && !verdict.reason.empty()) context.miss("attention", node, verdict.reason);
  }
  if (graph.version() != version) graph.prune();  // masks and weights that came to nothing, too
  return changes;
}

}  // namespace

Pass fuse_attention() {
  return {.name = "fuse-attention",
          .doc = "Softmax between two products, with heads, scale, mask and projections -> modelflow.Attention",
          .run = run};
}

}  // namespace modelflow::passes
