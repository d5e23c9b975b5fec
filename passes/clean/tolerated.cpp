// What ONNX Runtime runs although ONNX forbids it: it refuses such nodes as soon as it knows more of their inputs.
#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::int64_t kCountedParts = 18;  // the opset from which Split is told how many parts there are

/// Split into equal parts without their number: it is that of the outputs. ONNX Runtime refuses it once it knows the
/// extent that is split; with the number it refuses an axis of 0.
bool count_parts(Node& split, Context& context) {
  if (context.model.opset() < kCountedParts || split.input(1) || split.attrs.has("num_outputs")) return false;
  const Shape& x = split.input(0)->shape();
  if (!x.has_rank()) return false;
  const auto axis = positive({split.attrs.integer("axis", 0)}, std::ssize(x.dims()));
  if (!axis || x[static_cast<std::size_t>(axis->front())].number().value_or(0) <= 0) return false;
  split.attrs.set("num_outputs", static_cast<std::int64_t>(split.outputs().size()));
  context.hit("split-counts-parts");
  return true;
}

/// Bounds and step of a Range as vectors of one element: numbers.
bool take_numbers(Node& range, Context& context) {
  bool changed = false;
  for (std::size_t i = 0; i < range.inputs().size(); ++i) {
    const Tensor* bound = range.input(i) ? range.input(i)->constant() : nullptr;
    if (!bound || bound->rank() == 0 || bound->elements() != 1) continue;
    Graph& graph = range.graph();
    graph.set_input(range, i, &graph.add_constant(bound->reshaped({}), range.input(i)->name()));
    changed = true;
  }
  if (changed) context.hit("range-of-numbers");
  return changed;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (Node* node : nodes_of(graph, {"Split"})) changes += count_parts(*node, context) ? 1 : 0;
  for (Node* node : nodes_of(graph, {"Range"})) changes += take_numbers(*node, context) ? 1 : 0;
  return changes;
}

}  // namespace

Pass tolerated_forms() {
  return {.name = "tolerated-forms",
          .doc =
              "What ONNX Runtime runs although ONNX forbids it becomes what it means: Split without the number of its "
              "parts, Range of vectors of one element. Once more is known of their inputs, such nodes do not load.",
          .run = run};
}

}  // namespace modelflow::passes
