// Softmax between two products, and the standard Attention -> modelflow.Attention. What the products read is followed
// back through whatever only moves elements, down to the projections; three projections of one input become one.
#include <cmath>
#include <limits>
#include <numeric>

#include "modelflow/modelflow.h"
#include "passes/facts.h"
#include "passes/fuse/attention_build.h"
#include "passes/fuse/fuse.h"

namespace modelflow::passes {
namespace {

/// What stands around a Softmax.
Verdict fuse_products(Node& softmax, Context& context) {
  Core core;
  if (Verdict v = read_core(softmax, core); !v) return v;
  Attention found{.end = core.context, .nodes = core.nodes, .nan_guard = core.nan_guard, .turned = core.turned};
  found.q = read_heads(*core.scores->input(0), false);
  found.k = read_heads(*core.scores->input(1), true);
  found.v = read_heads(*core.values, core.turned);
  found.masking = [&](std::int64_t heads, Masking& masking) {
    return make_mask(core, heads, *core.context, context, masking);
  };
  return build_attention(std::move(found), context);
}

/// An operand of the standard op: heads as a product would read them, or [batch, sequence, heads * size].
std::vector<Heads> operand_heads(Value& value, std::int64_t heads) {
  if (rank_of(&value) != 3) return read_heads(value, false);
  const Dim& width = value.shape().back();
  if (heads < 1 || !width.known() || width.value() % heads != 0) return {};
  Heads whole(Heads::Form::bsh);
  whole.value = &value;
  whole.heads = heads;
  whole.size = width.value() / heads;
  whole.columns.resize(static_cast<std::size_t>(width.value()));
  std::iota(whole.columns.begin(), whole.columns.end(), 0);
  return {whole};
}

Verdict check_standard(const Node& node) {
  for (std::size_t i = 4; i < node.inputs().size(); ++i)
    if (node.input(i)) return no("it keeps past keys and values, or their length");
  for (std::size_t i = 1; i < node.outputs().size(); ++i)
    if (node.output(i) && (!node.output(i)->uses().empty() || node.output(i)->is_graph_output()))
      return no("a further output is read");
  return node.attrs.number("softcap") == 0 ? yes() : no("the scores are capped");
}

Verdict fuse_standard(Node& node, Context& context) {
  if (Verdict v = check_standard(node); !v) return v;
  const std::int64_t queries = node.attrs.integer("q_num_heads"), keys = node.attrs.integer("kv_num_heads");
  // Where a mask leaves nothing of a row the standard op gives 0, as its node tests say.
  Attention found{
      .end = &node, .nodes = {&node}, .nan_guard = node.input(3) != nullptr, .flat = rank_of(node.input(0)) == 3};
  found.q = operand_heads(*node.input(0), queries);
  found.k = operand_heads(*node.input(1), keys);
  found.v = operand_heads(*node.input(2), keys);
  const Dim size = found.q.empty() ? Dim() : found.q.front().size;
  if (!node.attrs.has("scale") && !size.known()) return no("the size of a head is unknown", node.input(0)->name());
  found.masking = [&](std::int64_t, Masking& masking) {
    masking.causal = node.attrs.integer("is_causal") != 0;
    masking.scale =
        node.attrs.has("scale") ? node.attrs.number("scale") : 1 / std::sqrt(static_cast<float>(size.value()));
    masking.mask = node.input(3);
    masking.mask_false = -std::numeric_limits<float>::infinity();  // of a boolean one
    const std::size_t rank = masking.mask ? rank_of(masking.mask).value_or(0) : 2;
    return rank >= 2 && rank <= 4 ? yes() : no("the mask is not of rank 2 to 4");
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
    const Verdict verdict = node->is("Softmax") ? fuse_products(*node, context) : fuse_standard(*node, context);
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
