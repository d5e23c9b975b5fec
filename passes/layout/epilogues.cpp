// What can be fused only once it runs channels last: what follows a ConvTranspose or, where a Transpose stood, a
// product, the repetition of pixels in front of a Concat, channels in turn behind one.
#include <algorithm>

#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"
#include "passes/layout/layout.h"

namespace modelflow::passes {
namespace {

int run(Graph& graph, Context& context) {
  Extents extents;
  int changes = 0;
  for (const auto& [family, rule] :
       {std::pair(Family::transposed_convolution, "conv-transpose"), std::pair(Family::product, "matmul")}) {
    const std::vector<Node*> nodes = nodes_of(graph, family, Form::f32);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it)  // a sum of two is the residual of the later one
      changes += absorb_epilogue(*it, context, extents, rule);
  }
  return changes;
}

/// Another Concat in place of this one; false where no kernel takes it.
bool remake(Node& concat, std::string_view rule, std::vector<Value*> inputs, Attrs attrs, Context& context) {
  Graph& graph = concat.graph();
  Node* made = make_fused(graph, context, rule, "modelflow.Concat", std::move(inputs), std::move(attrs), concat);
  if (!made) return false;
  made->name = concat.name;
  graph.replace(*concat.output(), *made->output());
  graph.erase(concat);
  return true;
}

/// The Concat with what its Upsamples read instead of what they write.
int absorb_into(Node& concat, Context& context) {
  std::vector<Value*> inputs = concat.inputs();
  Ints factors = concat.attrs.ints("factors");
  int taken = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node* up = inputs[i]->producer();
    if (!up || !computes(*up, Family::upsampling, Form::f32) || only_reader(*inputs[i]) != &concat) continue;
    const Ints more = up->attrs.ints("factors");
    if (more.size() != 2) continue;
    factors[2 * i] *= more[0];
    factors[2 * i + 1] *= more[1];
    inputs[i] = up->input(0);
    ++taken;
  }
  if (taken == 0) return 0;
  Attrs attrs = concat.attrs;
  attrs.set("factors", factors);
  if (!remake(concat, "concat-upsample", std::move(inputs), std::move(attrs), context)) return 0;
  context.hit("concat-upsample", taken);
  return taken;
}

/// A Concat of one image, which takes its channels in turn, over one that puts images side by side: one that takes the
/// images in turn.
int join_shuffle(Node& shuffle, const std::vector<Node*>& concats, Context& context) {
  Node* side = shuffle.inputs().size() == 1 ? shuffle.input(0)->producer() : nullptr;
  if (std::ranges::find(concats, side) == concats.end() || only_reader(*side->output()) != &shuffle) return 0;
  if (side->attrs.ints("groups") != Ints{1} || shuffle.attrs.ints("factors") != Ints{1, 1}) return 0;
  Attrs attrs = side->attrs;
  attrs.set("groups", shuffle.attrs.ints("groups"));
  if (!remake(shuffle, "concat-shuffle", side->inputs(), std::move(attrs), context)) return 0;
  context.hit("concat-shuffle");
  return 1;
}

int run_upsamples(Graph& graph, Context& context) {
  const auto concats = [&graph] { return nodes_of(graph, {"modelflow.Concat"}); };
  const std::vector<Node*> before = concats();
  int changes = 0;
  for (Node* node : before) changes += join_shuffle(*node, before, context);
  if (changes) graph.prune();
  for (Node* node : concats()) changes += absorb_into(*node, context);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass absorb_upsamples() {
  return {.name = "absorb-upsamples",
          .doc = "Pixels repeated in front of a channels-last Concat, or channels in turn behind it, become part of it",
          .run = run_upsamples};
}

Pass absorb_activations() {
  return {
      .name = "absorb-activations",
      .doc =
          "What follows a channels-last ConvTranspose, or a product behind which a Transpose stood, becomes part of it",
      .run = run};
}

}  // namespace modelflow::passes
