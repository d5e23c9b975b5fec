// A window of one with a stride reads only some of the pixels that the convolution before it computed: the stride goes
// into that convolution, which computes no others (the first convolution of a stage in ResNet v1, and beside it the one
// of the shortcut; OpenVINO calls it stride optimization).
#include <algorithm>
#include <set>

#include "passes/clean/clean.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

Ints strides_of(const Node& conv) {
  const std::size_t spatial = conv.input(1)->shape().rank() - 2;
  return conv.attrs.ints("strides", Ints(spatial, 1));
}

bool known_conv(const Node& node) {
  return node.is("Conv") && node.input(1) && node.input(1)->constant() && node.input(1)->constant()->rank() > 2 &&
         rank_of(node.input(0)) == node.input(1)->constant()->rank() &&
         strides_of(node).size() + 2 == node.input(1)->constant()->rank();
}

/// The stride of a convolution that takes every so many pixels as they are; nothing for any other.
std::optional<Ints> picks(const Node& node) {
  if (!known_conv(node) || !all_are(node.attrs.ints("pads"), 0) || !explicit_pads(node)) return {};
  const Dims& w = node.input(1)->constant()->dims();
  if (!all_are(w, 1, 2) || all_are(strides_of(node), 1)) return {};
  return strides_of(node);
}

/// The nodes between `value` and the convolutions that it is made of, these included; false when it is made of more
/// than convolutions and elementwise ops, or somebody else reads something in between.
bool collect(const Value& value, std::set<Node*>& nodes) {
  Node* node = value.producer();
  if (!node || &node->graph() != &value.graph() || value.is_graph_output()) return false;
  if (known_conv(*node)) return explicit_pads(*node) && nodes.insert(node).second;
  if (!node->domain().empty() || !elementwise(*node)) return false;
  nodes.insert(node);
  const auto rank = rank_of(&value);
  for (const Value* input : node->inputs()) {
    if (!input || (input->constant() && input->constant()->elements() == 1)) continue;
    if (const Tensor* constant = input->constant()) {
      if (!rank || constant->rank() > *rank || constant->rank() + 1 < *rank) return false;
      // [1, channels, 1, 1], the first of them perhaps left out
      if (!all_are(constant->dims(), 1, constant->rank() - (*rank - 2))) return false;
      continue;
    }
    if (!only_reader(*input) || !(input->shape() == value.shape()) || !collect(*input, nodes)) return false;
  }
  return true;
}

/// The common stride of everything that reads `value`; nothing when that takes other pixels.
std::optional<Ints> common_stride(const Value& value) {
  std::optional<Ints> stride;
  if (value.is_graph_output() || value.uses().empty() || !value.shape().has_rank()) return {};
  for (const Use& use : value.uses()) {
    const auto here = use.index == 0 && &use.node->graph() == &value.graph() ? picks(*use.node) : std::nullopt;
    if (!here || (stride && *stride != *here)) return {};
    stride = here;
  }
  return stride;
}

bool move_stride(Value& value, Context& context) {
  const std::optional<Ints> stride = common_stride(value);
  std::set<Node*> nodes;
  if (!stride || !collect(value, nodes)) return false;
  for (const Use& use : value.uses()) use.node->attrs.set("strides", Attr(Ints(stride->size(), 1)));
  for (Node* node : nodes) {
    for (Value* output : node->outputs())
      if (output) output->type.shape = {};
    if (!node->is("Conv")) continue;
    Ints strides = strides_of(*node);
    for (std::size_t i = 0; i < strides.size(); ++i) strides[i] *= (*stride)[i];
    node->attrs.set("strides", Attr(strides));
  }
  for (const auto& node : value.graph().nodes())
    if (nodes.contains(node.get())) infer_types(*node, context.model);
  context.hit("stride-into-convolution");
  return true;
}

int run(Graph& graph, Context& context) {
  std::vector<Value*> values;
  for (const auto& node : graph.nodes())
    if (picks(*node)) values.push_back(node->input(0));
  int changes = 0;
  for (Value* value : values) changes += move_stride(*value, context);
  return changes;
}

}  // namespace

Pass move_strides() {
  return {.name = "move-strides",
          .doc = "The stride of 1x1 convolutions goes into the convolution that they read, which then computes no more",
          .run = run};
}

}  // namespace modelflow::passes
