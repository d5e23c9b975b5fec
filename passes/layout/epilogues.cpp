// What can be fused only once it runs channels last: the activation behind a ConvTranspose, the repetition of pixels in
// front of a Concat.
#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"
#include "passes/layout/layout.h"

namespace modelflow::passes {
namespace {

int run(Graph& graph, Context& context) {
  const std::vector<Node*> nodes = nodes_of(graph, Family::transposed_convolution, Form::f32);
  if (nodes.empty()) return 0;
  Extents extents;
  int changes = 0;
  for (Node* node : nodes) changes += absorb_epilogue(node, context, extents, "conv-transpose");
  return changes;
}

/// The Concat with what its Upsamples read instead of what they write.
int absorb_into(Node& concat, Context& context) {
  Graph& graph = concat.graph();
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
  Node* made =
      make_fused(graph, context, "concat-upsample", "modelflow.Concat", inputs, {{"factors", factors}}, concat);
  if (!made) return 0;
  made->name = concat.name;
  graph.replace(*concat.output(), *made->output());
  graph.erase(concat);
  context.hit("concat-upsample", taken);
  return taken;
}

int run_upsamples(Graph& graph, Context& context) {
  const std::vector<Node*> nodes = nodes_of(graph, {"modelflow.Concat"});
  int changes = 0;
  for (Node* node : nodes) changes += absorb_into(*node, context);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass absorb_upsamples() {
  return {.name = "absorb-upsamples",
          .doc = "Pixels repeated in front of a channels-last Concat are repeated by the Concat",
          .run = run_upsamples};
}

Pass absorb_activations() {
  return {.name = "absorb-activations",
          .doc = "An activation behind a channels-last ConvTranspose becomes part of it",
          .run = run};
}

}  // namespace modelflow::passes
