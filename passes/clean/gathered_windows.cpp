// Windows of a signal by a Gather of single elements: torch.nn.functional.unfold along the last axis (ConvBERT) ->
// one Slice for each place in the window, which copies whole rows.
#include <limits>

#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/clean/counting.h"
#include "passes/graph/edits.h"

namespace modelflow::passes {
namespace {

constexpr std::int64_t kMostPlaces = 16;    // in a window: a Slice each
constexpr std::int64_t kMostElements = 16;  // behind the axis: a Gather copies them as one

/// result[.., k, s, ..] = data[.., k * dilation + s, ..] for `places` k, up to the end of the axis.
struct Windows {
  std::size_t axis = 0;
  std::int64_t places = 0, dilation = 0;
};

std::optional<Windows> windows_of(const Node& gather, Context& context) {
  const Shape &data = gather.input(0)->shape(), &grid = gather.input(1)->shape();
  if (!data.has_rank() || !grid.has_rank() || data.rank() == 0 || grid.rank() != 2) return {};
  const auto axis = positive({gather.attrs.integer("axis")}, std::ssize(data.dims()));
  if (!axis) return {};
  Windows found{static_cast<std::size_t>(axis->front()), grid[0].number().value_or(0), 0};
  if (found.places < 2 || found.places > kMostPlaces) return {};
  std::int64_t behind = 1;
  for (std::size_t i = found.axis + 1; i < data.rank(); ++i) behind *= data[i].number().value_or(kMostElements);
  if (behind >= kMostElements) return {};
  const std::optional<Steps> steps = Counting(context).of(*gather.input(1));
  if (!steps || steps->size() != 2 || (*steps)[1].number() != 1) return {};
  found.dilation = (*steps)[0].number().value_or(0);
  const bool to_the_end = data[found.axis] == grid[1] + Dim((found.places - 1) * found.dilation);
  return found.dilation > 0 && to_the_end ? std::optional(found) : std::nullopt;
}

void slice(Node& gather, const Windows& windows, Context& context) {
  Build build(gather.graph(), gather, context);
  const auto axis = static_cast<std::int64_t>(windows.axis);
  const auto list = [&](std::int64_t n, const char* stem) { return &build.constant(tensor_of({n}), stem); };
  std::vector<Value*> places;
  for (std::int64_t k = 0; k < windows.places; ++k) {
    const std::int64_t left = (windows.places - 1 - k) * windows.dilation;
    Value* end = list(left ? -left : std::numeric_limits<std::int64_t>::max(), "ends");
    Value& place = build.op("Slice", {gather.input(0), list(k * windows.dilation, "starts"), end, list(axis, "axes")});
    places.push_back(&with_axes(build, "Unsqueeze", place, {axis}));
  }
  gather.graph().replace(*gather.output(), build.op("Concat", std::move(places), {{"axis", axis}}));
  gather.graph().erase(gather);
  context.hit("gathered-windows");
}

int run(Graph& graph, Context& context) {
  if (context.model.opset() < 10) return 0;  // Slice has its numbers in attributes
  int changes = 0;
  for (Node* node : nodes_of(graph, {"Gather"})) {
    const std::optional<Windows> windows = windows_of(*node, context);
    if (!windows) continue;
    slice(*node, *windows, context);
    ++changes;
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass gathered_windows() {
  return {.name = "gathered-windows",
          .doc = "Gather of windows that move by one element -> a Slice for each place in them (unfold, ConvBERT)",
          .run = run};
}

}  // namespace modelflow::passes
