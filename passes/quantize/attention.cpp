// modelflow.Attention -> QAttention or AttentionBf16: both products in 8 bits or in bfloat16. Scales are those of the
// rows at hand, so no data is needed.
#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/quantize/faster.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

/// Keys and values are rounded and packed for all rows of a head: 48 of them do not pay for it, 64 do.
constexpr std::int64_t kLeastRows = 64;

Verdict check(const Node& node, Precision precision, const Context& context) {
  if (!context.plan->allows(node.name, precision)) return no("is to stay in higher precision");
  const Shape& q = node.input(0)->shape();
  if (!q.has_rank()) return no("the shape of the queries is not known");
  const Dim& rows = q[q.rank() == 3 ? 1 : 2];
  if (rows.known() && rows.value() < kLeastRows) return no("has few rows");
  return yes();
}

int lower(Graph& graph, Context& context, const char* rule, const char* op, Precision precision) {
  if (!context.plan) return 0;
  TypicalSizes sizes(context);
  int changes = 0;
  for (Node* node : nodes_of(graph, Family::attention, Form::f32)) {
    if (const Verdict verdict = check(*node, precision, context); !verdict) {
      context.miss(rule, node, verdict.reason);
      continue;
    }
    if (!make_faster(graph, context, rule, op, node->inputs(), node->attrs, *node, sizes)) continue;
    context.hit(rule);
    ++changes;
  }
  return changes;
}

}  // namespace

Pass quantize_attention() {
  return {.name = "quantize-attention",
          .doc = "Attention in 8 bits: queries and keys quantized row by row, values column by column",
          .run = [](Graph& graph, Context& context) {
            return lower(graph, context, "quantize-attention", "modelflow.QAttention", Precision::i8);
          }};
}

Pass attention_to_bfloat16() {
  return {.name = "attention-to-bf16",
          .doc = "Attention with both products in bfloat16, softmax in float32",
          .run = [](Graph& graph, Context& context) {
            return lower(graph, context, "attention-to-bf16", "modelflow.AttentionBf16", Precision::bf16);
          }};
}

}  // namespace modelflow::passes
