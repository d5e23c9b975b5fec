// Parts of an image that go through convolutions of their own and are put together again -> one grouped convolution
// (ResNeXt and AlexNet written before frameworks had groups).
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {

namespace {

bool along_channels(const Node& node, std::size_t rank) {
  return positive({node.attrs.integer("axis", 0)}, static_cast<std::int64_t>(rank)) == Ints{1};
}

bool constant_float(const Value* value) { return value && value->constant() && value->dtype() == DType::f32; }

/// Convolutions of the same kind with the same outputs, which only the Concat reads.
Verdict equal_parts(const Node& concat, std::vector<const Node*>& parts) {
  for (const Value* value : concat.inputs()) {
    const Node* conv = value ? value->producer() : nullptr;
    if (!conv || !conv->is("Conv") || only_reader(*value) != &concat) return no("");
    if (!constant_float(conv->input(1)) || (conv->input(2) && !constant_float(conv->input(2))))
      return no("is not constant", conv->label());
    parts.push_back(conv);
  }
  for (const Node* part : parts) {
    if (!equal(part->attrs, parts[0]->attrs)) return no("the convolutions differ", part->label());
    if (part->input(1)->constant()->dims() != parts[0]->input(1)->constant()->dims())
      return no("their weights are of different shapes", part->label());
    if (!part->input(2) != !parts[0]->input(2)) return no("some have no bias", part->label());
    const Dims& w = part->input(1)->constant()->dims();
    if (part->input(2) && (w.empty() || part->input(2)->constant()->dims() != Dims{w[0]}))
      return no("the bias has not one number for each channel", part->label());
  }
  return parts.size() > 1 ? yes() : no("");
}

/// What the convolutions read is one value cut into as many parts, in order.
const Node* cut_of(const std::vector<const Node*>& parts) {
  const Node* split = parts[0]->input(0)->producer();
  if (!split || !split->is("Split") || split->outputs().size() != parts.size()) return nullptr;
  const auto rank = rank_of(split->input(0));
  if (!rank || !along_channels(*split, *rank)) return nullptr;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i]->input(0) != split->output(i)) return nullptr;
  return split;
}

/// One of their inputs, of all of them along the first axis.
Tensor stacked_inputs(const std::vector<const Node*>& parts, std::size_t input) {
  std::vector<const Tensor*> constants;
  for (const Node* part : parts) constants.push_back(part->input(input)->constant());
  return stacked(constants);
}

bool group(Node& concat, Context& context) {
  std::vector<const Node*> parts;
  Verdict verdict = equal_parts(concat, parts);
  const Node* split = verdict ? cut_of(parts) : nullptr;
  if (verdict && !split) verdict = no("they read no equal parts of one value");
  if (verdict && !along_channels(concat, parts[0]->input(1)->constant()->rank()))
    verdict = no("the results are put together along another axis");
  if (!verdict) {
    if (!verdict.reason.empty()) context.miss("grouped-convolution", &concat, verdict.reason);
    return false;
  }
  Build build(concat.graph(), concat, context);
  std::vector<Value*> inputs = {split->input(0), &build.constant(stacked_inputs(parts, 1), "w")};
  if (parts[0]->input(2)) inputs.push_back(&build.constant(stacked_inputs(parts, 2), "b"));
  Attrs attrs = parts[0]->attrs;
  attrs.set("group", attrs.integer("group", 1) * static_cast<std::int64_t>(parts.size()));
  concat.graph().replace(*concat.output(), build.op("Conv", inputs, attrs));
  context.hit("grouped-convolution");
  return true;
}

int run(Graph& graph, Context& context) {
  const std::vector<Node*> concats = nodes_of(graph, {"Concat"});
  int changes = 0;
  for (Node* concat : concats) changes += group(*concat, context);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass group_convolutions() {
  return {.name = "group-convolutions",
          .doc = "Split, convolutions of its parts, Concat -> one convolution in groups",
          .run = run};
}

}  // namespace modelflow::passes
