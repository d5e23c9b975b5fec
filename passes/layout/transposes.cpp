// A Transpose costs a pass over the tensor; convolutions and the borders of 8-bit islands read and write either order.
#include <algorithm>

#include "passes/graph/channels_last.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/layout/layout.h"
#include "passes/layout/roles.h"

namespace modelflow::passes {
namespace {

/// A fused op that may read one order and write another.
bool has_layouts(const Node& node) {
  const FusedOp* op = fused_op(node);
  return op && op->layouts.size() == 2;
}

/// What stands behind a Transpose to `layout`; null when `value` is anything else.
Value* behind(const Value& value, std::string_view layout) {
  const Node* node = value.producer();
  if (!node || !node->is("Transpose") || &node->graph() != &value.graph()) return nullptr;
  const Ints perm = node->attrs.ints("perm");
  if (perm.size() < 3 || perm != (layout == "NHWC" ? to_last(perm.size()) : to_first(perm.size()))) return nullptr;
  return node->input(0);
}

std::string other(std::string_view layout) { return layout == "NHWC" ? "NCHW" : "NHWC"; }

struct Edit {
  std::vector<Value*> inputs;
  Attrs attrs;
  Node* after = nullptr;  ///< the Transpose behind the node that goes
  Ints rest = {};         ///< what it does besides
};

std::optional<Edit> read_side(const Node& node) {
  const std::string layout = node.attrs.text("x_layout");
  Value* x = node.input(0);
  // A shared Transpose runs once for all its readers.
  Value* source = only_reader(*x) ? behind(*x, layout) : nullptr;
  if (!source) return {};
  Edit edit{node.inputs(), node.attrs};
  edit.inputs[0] = source;
  edit.attrs.set("x_layout", other(layout));
  return edit;
}

/// What is left of a Transpose of channels first once they are last in front of it, where it brings them there: it
/// moves whole pixels then. Empty for any other, and where nothing is left.
Ints rest_behind_last(const Node& node) {
  Ints perm = node.is("Transpose") ? node.attrs.ints("perm") : Ints();
  if (perm.size() < 3 || perm.back() != 1) return {};
  for (std::int64_t& axis : perm) axis = last_axis(axis, perm.size());
  return std::ranges::is_sorted(perm) ? Ints() : perm;
}

std::optional<Edit> write_side(const Node& node) {
  const std::string layout = node.attrs.text("y_layout");
  Node* after = only_reader(*node.output());
  Ints rest = after && layout == "NCHW" ? rest_behind_last(*after) : Ints();
  if (!after || (rest.empty() && behind(*after->output(), other(layout)) != node.output())) return {};
  Edit edit{node.inputs(), node.attrs, after, std::move(rest)};
  edit.attrs.set("y_layout", other(layout));
  const std::optional<std::size_t> residual = place_of(node, "residual");
  if (!residual) return edit;
  Value* turned = behind(*node.input(*residual), layout);  // has the layout of y, so it must turn with it
  if (!turned) return {};
  edit.inputs[*residual] = turned;
  return edit;
}

bool apply(Node& node, const Edit& edit, Context& context) {
  Graph& graph = node.graph();
  Node& made =
      graph.add("modelflow." + node.op(), edit.inputs, {.before = &node, .attrs = edit.attrs, .name = node.name});
  infer_types(made, context.model);
  if (const Choice choice = choose_kernel(call_of(made), context.target); !choice.kernel) {
    context.miss("absorb-transpose", &node, choice.reason);
    graph.erase(made);
    return false;
  }
  made.doc = node.doc;
  if (edit.after) {
    Value* y = made.output();
    if (!edit.rest.empty()) {
      graph.rename(*y, graph.unique_name(last_name(node.output()->name())));
      Node& moved = graph.add("Transpose", {y}, {.before = edit.after, .attrs = {{"perm", edit.rest}}});
      infer_types(moved, context.model);
      y = moved.output();
    }
    graph.replace(*edit.after->output(), *y);
    graph.erase(*edit.after);
  } else {
    graph.replace(*node.output(), *made.output());
  }
  graph.erase(node);
  context.hit("absorb-transpose");
  return true;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (auto* side : {read_side, write_side}) {
    std::vector<Node*> nodes;
    for (const auto& node : graph.nodes()) {
      if (has_layouts(*node)) nodes.push_back(node.get());
    }
    for (Node* node : nodes) {
      if (const std::optional<Edit> edit = side(*node)) changes += apply(*node, *edit, context);
    }
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass absorb_transposes() {
  return {.name = "absorb-transposes",
          .doc = "A Transpose beside a fused convolution or a border of 8-bit numbers becomes its x_layout or y_layout",
          .run = run};
}

}  // namespace modelflow::passes
