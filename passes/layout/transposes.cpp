// A Transpose that stands beside a fused convolution costs a pass over the tensor; the convolution reads and writes
// either order.
#include "passes/extents.h"
#include "passes/layout/layout.h"
#include "passes/layout/roles.h"

namespace modelflow::passes {
namespace {

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
  Node* after = nullptr;  ///< the Transpose behind the convolution that goes
};

std::optional<Edit> read_side(const Node& conv) {
  const std::string layout = conv.attrs.text("x_layout", "NCHW");
  Value* x = conv.input(0);
  // A shared Transpose runs once for all its readers.
  Value* source = only_reader(*x) ? behind(*x, layout) : nullptr;
  if (!source) return {};
  Edit edit{conv.inputs(), conv.attrs};
  edit.inputs[0] = source;
  edit.attrs.set("x_layout", other(layout));
  return edit;
}

std::optional<Edit> write_side(const Node& conv) {
  const std::string layout = conv.attrs.text("y_layout", "NCHW");
  Node* after = only_reader(*conv.output());
  if (!after || behind(*after->output(), other(layout)) != conv.output()) return {};
  Edit edit{conv.inputs(), conv.attrs, after};
  edit.attrs.set("y_layout", other(layout));
  if (conv.attrs.text("residual", "none") == "none") return edit;
  Value* residual = behind(*conv.inputs().back(), layout);  // has the layout of y, so it must turn with it
  if (!residual) return {};
  edit.inputs.back() = residual;
  return edit;
}

bool apply(Node& conv, const Edit& edit, Context& context) {
  Graph& graph = conv.graph();
  Node& made =
      graph.add("modelflow." + conv.op(), edit.inputs, {.before = &conv, .attrs = edit.attrs, .name = conv.name});
  infer_types(made, context.model);
  if (const Choice choice = choose_kernel(call_of(made), context.target); !choice.kernel) {
    context.miss("absorb-transpose", &conv, choice.reason);
    graph.erase(made);
    return false;
  }
  made.doc = conv.doc;
  if (edit.after) {
    graph.replace(*edit.after->output(), *made.output());
    graph.erase(*edit.after);
  } else {
    graph.replace(*conv.output(), *made.output());
  }
  graph.erase(conv);
  context.hit("absorb-transpose");
  return true;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (auto* side : {read_side, write_side}) {
    std::vector<Node*> convs;
    for (const auto& node : graph.nodes()) {
      if (node->is("modelflow.Conv") || node->is("modelflow.QConv")) convs.push_back(node.get());
    }
    for (Node* conv : convs) {
      if (const std::optional<Edit> edit = side(*conv)) changes += apply(*conv, *edit, context);
    }
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass absorb_transposes() {
  return {.name = "absorb-transposes",
          .doc = "A Transpose beside a fused convolution becomes the convolution's x_layout or y_layout",
          .run = run};
}

}  // namespace modelflow::passes
