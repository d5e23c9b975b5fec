// Softmax and LogSoftmax that no attention took, with the scale and the mask in front of them -> modelflow.Softmax.
#include <cmath>
#include <limits>

#include "modelflow/modelflow.h"
#include "passes/fuse/attention_scores.h"
#include "passes/fuse/columns.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::int64_t kColumns = 16;  ///< side by side: what is worth a loop (measured)

/// What leads to a Softmax: softmax(scale * x + mask).
struct Front {
  Value* x;
  float scale = 1;
  Value* mask = nullptr;                ///< float32, or boolean
  float mask_true = 0, mask_false = 0;  ///< what a boolean one puts in place of scores, by `replaces`
  const char* replaces = "none";
  std::vector<Node*> nodes = {};  ///< in between, last first
};

/// The axis counted from the end; nothing where the op works on several at once or the rank is unknown.
std::optional<std::int64_t> axis_of(const Node& node, std::int64_t opset) {
  const std::int64_t axis = node.attrs.integer("axis", opset < 13 ? 1 : -1);
  const auto rank = static_cast<std::int64_t>(rank_of(node.input(0)).value_or(0));
  if (rank == 0 && (axis >= 0 || opset < 13)) return {};
  const std::int64_t behind = axis < 0 ? axis : axis - rank;
  if (rank > 0 && (behind < -rank || behind >= 0)) return {};
  return opset >= 13 || behind == -1 ? std::optional(behind) : std::nullopt;
}

Node* made_for(const Value& value) {
  Node* node = value.producer();
  return node && &node->graph() == &value.graph() && only_reader(value) ? node : nullptr;
}

bool is_mask(const Value& value) {
  return rank_of(&value) && (value.dtype() == DType::f32 || value.dtype() == DType::boolean);
}

/// x + mask, where the sum is as large as x: the operand that is scaled, else the first that can be x.
bool take_sum(const Node& node, Front& front, Extents& extents) {
  const Shape shape = extents.of(*node.output());
  for (const bool scaled_only : {true, false}) {
    for (const std::size_t i : {0, 1}) {
      Value &x = *node.input(i), &mask = *node.input(1 - i);
      Value* inner = nullptr;
      if (x.constant() || !(extents.of(x) == shape) || !is_mask(mask)) continue;
      if (scaled_only && !(made_for(x) && scaled(*x.producer(), inner))) continue;
      front.x = &x;
      front.mask = &lean(mask, nullptr);
      return true;
    }
  }
  return false;
}

/// Where(allowed, x, low) and Where(masked, low, x); a Not in front of the flags changes places.
bool take_choice(const Node& node, Front& front, Extents& extents) {
  for (const std::size_t i : {1, 2}) {
    const std::optional<double> low = const_number(node.input(3 - i));
    Value &x = *node.input(i), &condition = *node.input(0);
    if (!low || *low > kLow || x.constant() || !is_mask(condition)) continue;
    if (!(extents.of(x) == extents.of(*node.output()))) continue;
    front.x = &x;
    const Node* other = condition.producer();
    const bool negated = other && other->is("Not") && &other->graph() == &node.graph();
    front.mask = &lean(negated ? *other->input(0) : condition, nullptr);
    const bool keeps = (i == 1) != negated;
    (keeps ? front.mask_false : front.mask_true) = static_cast<float>(*low);
    front.replaces = keeps ? "false" : "true";
    return true;
  }
  return false;
}

Front read_front(const Node& softmax, bool last_axis, Extents& extents) {
  Front front{softmax.input(0)};
  if (!front.x->shape().has_rank()) return front;
  Node* node = made_for(*front.x);
  if (node && last_axis &&
      ((node->is("Add") && take_sum(*node, front, extents)) ||
       (node->is("Where") && take_choice(*node, front, extents)))) {
    front.nodes.push_back(node);
    node = made_for(*front.x);
  }
  Value* inner = nullptr;
  if (const std::optional<float> scale = node ? scaled(*node, inner) : std::nullopt) {
    front.x = inner;
    front.scale = *scale;
    front.nodes.push_back(node);
  }
  return front;
}

/// Whether enough of them stand side by side behind `axis`, which is negative, for rows to be done at once.
bool columns_behind(const Shape& shape, std::int64_t axis) {
  if (!shape.has_rank() || -axis > static_cast<std::int64_t>(shape.rank())) return false;
  const std::size_t behind = shape.rank() - static_cast<std::size_t>(-axis) + 1;
  return elements_from(shape, behind).value_or(kColumns) >= kColumns;
}

bool fuse_softmax(Node& node, Context& context, Extents& extents) {
  if (node.input(0)->dtype() != DType::f32) return false;
  const std::optional<std::int64_t> axis = axis_of(node, context.model.opset());
  if (!axis) {
    context.miss("softmax", &node, "it works on several axes, or on one of unknown rank");
    return false;
  }
  const Shape& shape = node.input(0)->shape();
  if (*axis != -1 && !columns_behind(shape, *axis)) {
    context.miss("softmax", &node, "too few columns stand side by side, or nobody knows how many");
    return false;
  }
  const Front front = read_front(node, *axis == -1, extents);
  if (*axis == -1 && front.nodes.empty()) {
    context.miss("softmax", &node, "alone on the last axis, where ONNX Runtime's own is as fast");
    return false;
  }
  Attrs attrs{{"axis", *axis}, {"scale", front.scale}, {"log", std::int64_t{node.is("LogSoftmax")}}};
  std::vector<Value*> inputs = {front.x};
  if (front.mask) {
    inputs.push_back(front.mask);
    attrs.set("has_mask", 1).set("boolean_mask", front.mask->dtype() == DType::boolean ? 1 : 0);
    attrs.set("mask_true", Attr(front.mask_true)).set("mask_false", Attr(front.mask_false));
    if (front.mask->dtype() == DType::boolean) attrs.set("replaces", front.replaces);
  }
  Graph& graph = node.graph();
  Node* fused = make_fused(graph, context, "softmax", "modelflow.Softmax", std::move(inputs), std::move(attrs), node);
  if (!fused) return false;
  extents.forget(*node.output());
  graph.replace(*node.output(), *fused->output());
  graph.erase(node);
  for (Node* inner : front.nodes) {
    extents.forget(*inner->output());
    graph.erase(*inner);
  }
  context.hit("softmax");
  return true;
}

int run(Graph& graph, Context& context) {
  const std::vector<Node*> nodes = nodes_of(graph, {"Softmax", "LogSoftmax"});
  if (nodes.empty() || context.model.opset() < 11) return 0;  // no axes from the end
  const std::uint64_t version = graph.version();
  Extents extents;
  int changes = 0;
  for (Node* node : nodes) changes += fuse_softmax(*node, context, extents);
  if (graph.version() != version) graph.prune();  // what only widened a mask
  return changes;
}

}  // namespace

Pass fuse_softmax() {
  return {.name = "fuse-softmax",
          .doc = "Softmax and LogSoftmax that no attention took, scale and mask in front of them -> modelflow.Softmax",
          .run = run};
}

}  // namespace modelflow::passes
