// Channels in turn from groups of them, as Reshape, Transpose, Reshape (ShuffleNet) -> one Gather of channels: a node
// that copies whole channels where they come second, and an op of ours where they come last.
#include <numeric>

#include "modelflow/modelflow.h"
#include "modelflow/pattern.h"
#include "passes/graph/channels_last.h"
#include "passes/graph/facts.h"
#include "passes/graph/shuffle.h"
#include "passes/graph/strided_view.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

/// How many groups the channels, which come second, are taken in turn from, while axes go where `perm` says; 0 where
/// the view is anything else.
std::int64_t groups_in(const StridedView& view, const Shape& source, const Ints& perm) {
  if (view.axes().size() != source.rank() || !source[1].known()) return 0;
  StridedView::Axis runs;
  for (std::size_t i = 0; i < source.rank(); ++i) {
    const auto from = static_cast<std::size_t>(perm[i]);
    if (from == 1) runs = StridedView::joined(view.axes()[i]);
    const bool unit = view.axes()[i].empty() && source[from] == Dim(1);
    if (from != 1 && !unit && view.source_axis(i, source) != from) return 0;
  }
  if (runs.size() != 2 || runs[0].axis != 1 || runs[1].axis != 1) return 0;
  const Dim &each = runs[0].extent, &groups = runs[1].extent;
  const bool in_turn = runs[0].stride == Dim(1) && runs[1].stride == each;
  if (!in_turn || !each.known() || !groups.known() || each.value() * groups.value() != source[1].value()) return 0;
  return groups.value();
}

bool shuffle(Node& last, Context& context) {
  const Node* turn = last.is("Reshape") ? last.input(0)->producer() : nullptr;
  const Node* first = turn && turn->is("Transpose") ? turn->input(0)->producer() : nullptr;
  if (!first || !first->is("Reshape")) return false;
  Value& x = *first->input(0);
  if (!x.shape().has_rank() || x.shape().rank() < 3 || x.constant()) return false;
  StridedView view(x.shape());
  if (!view.follow(*first->output()) || !view.follow(*turn->output()) || !view.follow(*last.output())) return false;
  Ints stay(x.shape().rank());
  std::iota(stay.begin(), stay.end(), 0);
  const Ints to_end = to_last(x.shape().rank());  // what bodies of our own say, with the Transpose that follows them
  const std::int64_t in_place = groups_in(view, x.shape(), stay);
  const std::int64_t groups = in_place ? in_place : groups_in(view, x.shape(), to_end);
  if (groups < 2) return false;
  Build build(last.graph(), last, context);
  Value& order = build.constant(tensor_of(shuffled(x.shape()[1].value(), groups)), "channels");
  Value* made = &build.op("Gather", {&x, &order}, {{"axis", std::int64_t{1}}});
  made->producer()->name = last.name;
  if (!in_place) made = &build.op("Transpose", {made}, {{"perm", to_end}});
  made->type = last.output()->type;
  last.graph().replace(*last.output(), *made);
  last.graph().erase(last);
  context.hit("channel-shuffle");
  return true;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (Node* node : nodes_of(graph, {"Reshape"})) changes += shuffle(*node, context);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass shuffle_channels() {
  return {.name = "shuffle-channels",
          .doc = "Reshape, Transpose, Reshape that take channels in turn from groups of them become one Gather",
          .run = run};
}

}  // namespace modelflow::passes
