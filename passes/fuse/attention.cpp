// Softmax between two products, and the standard Attention -> modelflow.Attention. What the products read is followed
// back through whatever only moves elements, down to the projections; three projections of one input become one.
#include <algorithm>
#include <array>
#include <set>

#include "modelflow/modelflow.h"
#include "passes/fuse/attention_build.h"
#include "passes/fuse/attention_standard.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/projection.h"
#include "passes/fuse/split_products.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// Images and windows of operands of rank 5 become one batch, so none may be repeated for another's.
bool same_windows(const Core& core) {
  const Shape &q = core.scores->input(0)->shape(), &k = core.scores->input(1)->shape(), &v = core.values->shape();
  const auto same = [&](std::size_t axis) { return !q[axis].unknown() && q[axis] == k[axis] && q[axis] == v[axis]; };
  return (q.rank() != 5 && v.rank() != 5) || (q.rank() == v.rank() && same(0) && same(1));
}

/// Scores taken apart into windows have the keys of the product: a single one that a mask repeated would be repeated in
/// the body behind a Reshape that knows of one. (An axis of one behind them is refused with the mask.)
bool same_keys(const Core& core) {
  const Shape& product = core.scores->output()->shape();
  return std::ranges::all_of(core.steps, [&](const ScoreStep& step) {
    return !step.scores.has_rank() || step.scores.rank() != 5 || product.rank() == 5 ||
           step.scores.back().number() == 1 || step.scores.back() == product.back();
  });
}

/// All ways to read queries, keys and values.
using Readings = std::array<std::vector<Heads>, 3>;

Readings read_operands(const Core& core) {
  return {read_heads(*core.scores->input(0), false), read_heads(*core.scores->input(1), true),
          read_heads(*core.values, core.turned)};
}

/// What stands around a Softmax.
Verdict fuse_products(Node& softmax, Context& context) {
  Core core;
  if (Verdict v = read_core(softmax, core); !v) return v;
  if (!same_windows(core)) return no("queries, keys and values have unlike windows", core.scores->output()->name());
  if (!same_keys(core)) return no("may be of one key, repeated for all", core.scores->output()->name());
  auto [q, k, v] = read_operands(core);
  Attention found{.end = core.context,
                  .nodes = core.nodes,
                  .q = std::move(q),
                  .k = std::move(k),
                  .v = std::move(v),
                  .nan_guard = core.nan_guard,
                  .turned = core.turned};
  found.masking = [&](std::int64_t heads, Masking& masking) {
    return make_mask(core, heads, *core.context, context, masking);
  };
  return build_attention(std::move(found), context);
}

/// None where the node is no part of an attention.
Readings read_operands(Node& node) {
  Core core;
  if (!node.is("Attention")) return read_core(node, core) ? read_operands(core) : Readings();
  Readings operands;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (rank_of(node.input(i)) == 4) operands[i] = read_heads(*node.input(i), false);
  return operands;
}

/// All are rows that were projected from one value.
bool may_pack(const Readings& operands) {
  std::set<const Value*> sources;
  for (const std::vector<Heads>& operand : operands) {
    const auto rows = std::ranges::find(operand, Heads::Form::bsh, &Heads::form);
    if (rows == operand.end()) return false;
    const std::optional<Projection> projection = read_projection(*rows->value);
    sources.insert(projection ? projection->x : rows->value);
  }
  return sources.size() == 1;
}

/// An operand whose heads stand in a packed projection gets a projection of its own and is read where that leaves it,
/// where attention cannot take the projections as one: the others are turned (Rotary), cut, or made of another value.
bool tell_apart(Node& node, Context& context) {
  const auto operands = read_operands(node);
  return !may_pack(operands) &&
         std::ranges::any_of(operands, [&](const auto& operand) { return split_packed(operand, context); });
}

int run(Graph& graph, Context& context) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    if (node->output() && (node->is("Softmax") || node->is("Attention"))) nodes.push_back(node.get());
  const std::uint64_t version = graph.version();
  int changes = 0;
  for (Node* node : nodes)
    while (tell_apart(*node, context)) ++changes;
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
