// modelflow.Attention -> QAttention: both products in 8 bits. Scales are those of the rows at hand, so no data is
// needed.
#include "passes/facts.h"
#include "passes/quantize/faster.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

/// Keys and values are quantized for all rows of a head: fewer rows do not pay for it.
constexpr std::int64_t kLeastRows = 16;

Verdict check(const Node& node, const Context& context) {
  if (context.plan->keep_float.contains(node.name)) return no("is to stay in float32");
  const Shape& q = node.input(0)->shape();
  if (!q.has_rank()) return no("the shape of the queries is not known");
  const Dim& rows = q[q.rank() == 3 ? 1 : 2];
  if (rows.known() && rows.value() < kLeastRows) return no("has few rows");
  return yes();
}

int run(Graph& graph, Context& context) {
  if (!context.plan) return 0;
  int changes = 0;
  for (Node* node : nodes_of(graph, {"modelflow.Attention"})) {
    if (const Verdict verdict = check(*node, context); !verdict) {
      context.miss("quantize-attention", node, verdict.reason);
      continue;
    }
    if (!make_faster(graph, context, "quantize-attention", "modelflow.QAttention", node->inputs(), node->attrs, *node))
      continue;
    context.hit("quantize-attention");
    ++changes;
  }
  return changes;
}

}  // namespace

Pass quantize_attention() {
  return {.name = "quantize-attention",
          .doc = "Attention in 8 bits: queries and keys quantized row by row, values column by column",
          .run = run};
}

}  // namespace modelflow::passes
