// The orders of axes in which LSTM and GRU write Y, and the views behind them that ask for one.
#include "passes/fuse/recurrent_result.h"

#include <algorithm>
#include <array>

#include "modelflow/modelflow.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/strided_view.h"

namespace modelflow::passes {
namespace {

/// The orders of Y [seq, dirs, batch, hidden] that the op can write.
struct Layout {
  std::string_view name;
  std::array<std::int64_t, 4> perm;
  bool joined;  ///< the last two as one axis
};
constexpr std::array<Layout, 4> kLayouts = {{{"SBDH", {0, 2, 1, 3}, false},
                                             {"BSDH", {2, 0, 1, 3}, false},
                                             {"SBH", {0, 2, 1, 3}, true},
                                             {"BSH", {2, 0, 1, 3}, true}}};

bool shows(const StridedView& view, const Shape& y, const Layout& layout) {
  StridedView wanted(y);
  wanted.transpose(Ints(layout.perm.begin(), layout.perm.end()));
  std::vector<StridedView::Axis> axes = wanted.axes();
  if (layout.joined) {
    axes[2].insert(axes[2].end(), axes[3].begin(), axes[3].end());
    axes.pop_back();
  }
  const auto same_run = [](const StridedView::Run& a, const StridedView::Run& b) {
    return a.axis == b.axis && a.extent == b.extent && a.stride == b.stride;
  };
  return std::ranges::equal(view.axes(), axes, [&](const StridedView::Axis& a, const StridedView::Axis& b) {
    return std::ranges::equal(StridedView::joined(a), StridedView::joined(b), same_run);
  });
}

/// The last value behind Y that is nothing but Y in such an order.
struct Behind {
  std::string_view layout;
  Value* value = nullptr;
};

Behind behind(Value& y) {
  Behind found;
  if (!y.shape().has_rank() || y.shape().rank() != 4) return found;
  StridedView view(y.shape());
  Value* value = &y;
  for (Node* node = only_reader(*value); node; node = only_reader(*value)) {
    if (node->input(0) != value || !node->output() || !view.follow(*node->output())) break;
    value = node->output();
    for (const Layout& layout : kLayouts)
      if (shows(view, y.shape(), layout)) found = {layout.name, value};
  }
  return found;
}

}  // namespace

int order_y(Node& fused, Context& context) {
  const std::string outputs = fused.attrs.text("outputs");
  if (fused.attrs.text("y_layout") != "SDBH" || (outputs != "Y" && !outputs.starts_with("Y "))) return 0;
  const Behind wanted = behind(*fused.output());
  if (!wanted.value) return 0;
  Graph& graph = fused.graph();
  Attrs attrs = fused.attrs;
  attrs.set("y_layout", Attr(std::string(wanted.layout)));
  Node* made = make_fused(graph, context, "recurrent-result", "modelflow." + fused.op(), fused.inputs(), attrs, fused,
                          fused.outputs().size());
  if (!made) return 0;
  made->name = fused.name;
  made->doc = fused.doc;
  graph.replace(*wanted.value, *made->output());
  for (std::size_t i = 1; i < fused.outputs().size(); ++i) graph.replace(*fused.output(i), *made->output(i));
  graph.prune();
  context.hit("recurrent-result");
  return 1;
}

}  // namespace modelflow::passes
