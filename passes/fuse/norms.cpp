// What stands around a normalization: a residual sum in front of LayerNorm that nothing else took, an activation behind
// GroupNorm.
#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

Verdict check(const Node& norm, const Node& sum) {
  for (std::size_t i = 1; i < norm.inputs().size(); ++i) {
    if (!norm.input(i)->is_initializer()) return no("is computed, perhaps behind the sum", norm.input(i)->name());
  }
  for (const Value* input : sum.inputs()) {
    if (!input->shape().has_rank()) return no("its rank is unknown", input->name());
  }
  return yes();
}

/// A Reshape of the rows in front of a LayerNorm over the last axis, which does not mind; null when there is none.
Node* rows_reshaped(const Node& norm) {
  Node* view = norm.input(0)->producer();
  if (!view || !view->is("Reshape") || norm.attrs.integer("axis") != -1 || !only_reader(*view->input(0)))
    return nullptr;
  const Shape &before = view->input(0)->shape(), &after = view->output()->shape();
  const bool same = before.has_rank() && after.has_rank() && before.rank() > 0 && after.rank() > 0 &&
                    before.back().known() && before.back() == after.back();
  return same && &view->graph() == &norm.graph() ? view : nullptr;
}

/// LayerNorm of a sum: the sum is computed on the way, and written too when something else reads it.
bool absorb_sum(Node& norm, Context& context, Extents& extents) {
  Value& x = *norm.input(0);
  Node* view = rows_reshaped(norm);
  Node* sum = view ? view->input(0)->producer() : x.producer();
  if (norm.attrs.text("residual") != "none" || !sum || !sum->is("Add") || &sum->graph() != &norm.graph()) return false;
  if (const Verdict verdict = check(norm, *sum); !verdict) {
    context.miss("layer-norm-residual", &norm, verdict.reason);
    return false;
  }
  Graph& graph = norm.graph();
  const bool keep = only_reader(x) == nullptr;
  Attrs attrs = norm.attrs;
  attrs.set("residual", "before").set("keep_sum", keep ? 1 : 0);
  std::vector<Value*> inputs = norm.inputs();
  // The result may take the place of x, if that is all of it.
  const bool first = extents.of(*sum->input(0)) == extents.of(*sum->output());
  inputs[0] = sum->input(first ? 0 : 1);
  inputs.push_back(sum->input(first ? 1 : 0));
  // At the place of the sum, because others may read it before the normalization runs.
  Node* made = make_fused(graph, context, "layer-norm-residual", "modelflow.LayerNorm", std::move(inputs),
                          std::move(attrs), *sum, keep ? 2 : 1);
  if (!made) return false;
  made->name = norm.name;
  made->doc = norm.doc;
  extents.forget(x);
  extents.forget(*sum->output());
  extents.forget(*norm.output());
  const auto shaped = [&](Value& rows, Node& before) -> Value& {
    return view ? Build(graph, before, context).op("Reshape", {&rows, view->input(1)}, view->attrs) : rows;
  };
  graph.replace(*norm.output(), shaped(*made->output(), norm));
  graph.erase(norm);
  if (keep) graph.replace(x, shaped(*made->output(1), view ? *view : *sum));
  if (view) graph.erase(*view);
  graph.erase(*sum);
  context.hit("layer-norm-residual");
  return true;
}

/// A sum of the normalization and a value of its shape (Swin v2, OLMo 2): at the place of the sum, behind both.
bool absorb_sum_after(Node& norm, Context& context, Extents& extents) {
  Node* sum = only_reader(*norm.output());
  if (norm.attrs.text("residual") != "none" || !sum || !sum->is("Add") || &sum->graph() != &norm.graph()) return false;
  Value& other = *sum->input(sum->input(0) == norm.output() ? 1 : 0);
  const Shape whole = extents.of(*norm.output());
  if (!whole.has_rank() || !(extents.of(other) == whole)) return false;
  std::vector<Value*> inputs = norm.inputs();
  inputs.push_back(&other);
  Attrs attrs = norm.attrs;
  attrs.set("residual", "after");
  Graph& graph = norm.graph();
  Node* made = make_fused(graph, context, "layer-norm-residual-after", "modelflow.LayerNorm", std::move(inputs),
                          std::move(attrs), *sum);
  if (!made) return false;
  made->name = sum->name;
  extents.forget(*norm.output());
  extents.forget(*sum->output());
  graph.replace(*sum->output(), *made->output());
  graph.erase(*sum);
  graph.erase(norm);
  context.hit("layer-norm-residual-after");
  return true;
}

int run_layers(Graph& graph, Context& context) {
  const std::vector<Node*> norms = nodes_of(graph, {"modelflow.LayerNorm"});
  if (norms.empty()) return 0;
  Extents extents;
  int changes = 0;
  for (Node* norm : norms) changes += absorb_sum(*norm, context, extents);
  for (Node* norm : nodes_of(graph, {"modelflow.LayerNorm"})) changes += absorb_sum_after(*norm, context, extents);
  return changes;
}

int run_groups(Graph& graph, Context& context) {
  const std::vector<Node*> norms = nodes_of(graph, {"modelflow.GroupNorm"});
  if (norms.empty()) return 0;
  Extents extents;
  int changes = 0;
  for (Node* norm : norms) changes += absorb_epilogue(norm, context, extents, "group-norm");
  return changes;
}

}  // namespace

Pass fuse_layer_norm() {
  return {.name = "fuse-layer-norm",
          .doc =
              "A sum that no product or convolution took and a LayerNorm behind it or in front of it -> one "
              "modelflow.LayerNorm",
          .run = run_layers};
}

Pass fuse_group_norm() {
  return {.name = "fuse-group-norm", .doc = "An activation behind GroupNorm becomes part of it", .run = run_groups};
}

}  // namespace modelflow::passes
