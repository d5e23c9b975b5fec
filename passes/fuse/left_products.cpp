// A linear layer over the tokens of [..., tokens, channels] (gMLP, arXiv 2105.08050; ResMLP, 2105.03404) is written for
// [..., channels, tokens], between two Transposes. Its weights may multiply from the left instead, where the tokens
// lie: then nothing is moved, and a gate or a residual sum behind it can be taken by the product. Of two layers in a
// row (MLP-Mixer) the second would have to pack what the first gives, which takes as long as the Transposes do.
#include <set>

#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"
#include "passes/graph/precision.h"
#include "passes/graph/transposed.h"

namespace modelflow::passes {
namespace {

constexpr std::string_view kRule = "left-product";

/// Channels that fill the tiles of a product. Fewer are better rows than columns: several series of numbers, say.
constexpr std::int64_t kLeastChannels = 64;

/// Transpose, layer, Transpose, each read by the next alone.
struct Chain {
  Node *first, *layer, *last;
};

/// A product by a constant matrix from the right and what follows it, as far as it can be told of rows as well.
bool is_layer(const Node& node, const Value& x) {
  if (!node.is("modelflow.MatMul") || node.input(0) != &x || node.attrs.integer("trans_a")) return false;
  const Tensor* weights = node.input(1)->constant();
  const Value* bias = input_as(node, "bias");
  return weights && weights->rank() == 2 && !(bias && !bias->constant()) && !node.attrs.integer("row_bias") &&
         node.attrs.text("residual") == "none";
}

std::optional<Chain> read(Node& first) {
  Node* layer = swaps_last_two(first) ? only_reader(*first.output()) : nullptr;
  if (!layer || &layer->graph() != &first.graph() || !is_layer(*layer, *first.output())) return {};
  Node* last = only_reader(*layer->output());
  if (!last || &last->graph() != &first.graph() || !swaps_last_two(*last)) return {};
  return Chain{&first, layer, last};
}

int rewrite(const Chain& chain, Context& context, Extents& extents) {
  Graph& graph = chain.first->graph();
  const Node& layer = *chain.layer;
  const Value& weights = *layer.input(1);
  const Tensor& w = *weights.constant();
  const bool turned = layer.attrs.integer("trans_b") != 0;
  Attrs attrs = layer.attrs;
  attrs.set("trans_b", 0).set("row_bias", 1);
  std::vector<Value*> inputs = {&graph.add_constant(turned ? w : transposed(w, {1, 0}), weights.name()),
                                chain.first->input(0)};
  if (const Value* bias = input_as(layer, "bias"))
    inputs.push_back(&graph.add_constant(bias->constant()->reshaped({bias->constant()->elements(), 1}), bias->name()));
  Node* made = make_fused(graph, context, kRule, "modelflow.MatMul", std::move(inputs), std::move(attrs), *chain.last);
  if (!made) return 0;
  made->name = layer.name;
  extents.forget(*chain.last->output());
  graph.replace(*chain.last->output(), *made->output());
  for (Node* node : {chain.last, chain.layer, chain.first}) graph.erase(*node);
  context.hit(kRule);
  return 1 + absorb_epilogue(made, context, extents, "matmul");
}

int run(Graph& graph, Context& context) {
  // Ops of lower precision have their weights on the right; before opset 10 no body says how often they are there.
  if (!keeps_ops(context.options) || context.model.opset() < 10) return 0;
  const std::uint64_t version = graph.version();
  Extents extents;
  int changes = 0;
  std::set<const Node*> gone;
  for (Node* first : nodes_of(graph, {"Transpose"})) {
    const std::optional<Chain> chain = gone.contains(first) ? std::nullopt : read(*first);
    if (!chain) continue;
    const Shape& x = first->input(0)->shape();
    if (!x.has_rank() || x.back().number().value_or(0) < kLeastChannels) {
      context.miss(kRule, first, "few channels, or nobody knows how many");
      continue;
    }
    gone.insert(chain->last);
    changes += rewrite(*chain, context, extents);
  }
  if (graph.version() != version) graph.prune();  // weights that no kernel was found for, too
  return changes;
}

}  // namespace

Pass left_products() {
  return {.name = "left-products",
          .doc = "Transpose, linear layer, Transpose back -> a product with the weights on the left",
          .run = run};
}

}  // namespace modelflow::passes
