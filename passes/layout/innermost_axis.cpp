// An axis that two Transposes take away from the end and bring back to it stays there: rows of numbers that lie side by
// side are copied whole. Windows of an image cut from rows of pixels (MaxViT's grid behind its blocks).
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/layout/layout.h"

namespace modelflow::passes {
namespace {

using Extents = std::vector<Dim>;

Dim product(Extents::const_iterator begin, Extents::const_iterator end) {
  return std::accumulate(begin, end, Dim(1), std::multiplies());
}

/// Transpose, Reshape, Transpose, none of them read by others.
struct Chain {
  Node *first, *view, *last;
  std::size_t at;    ///< where the innermost axis of the input stands between `first` and `view`
  std::size_t then;  ///< and between `view` and `last`, which brings it back
};

/// Axis `b` of `to` holds what axis `a` of `from` holds, and so do those in front of it and behind it together.
bool is_kept(const Extents& from, std::size_t a, const Extents& to, std::size_t b) {
  const auto same = [](const Dim& x, const Dim& y) { return !x.unknown() && x == y; };
  const auto i = static_cast<std::ptrdiff_t>(a), k = static_cast<std::ptrdiff_t>(b);
  return same(from[a], to[b]) && same(product(from.begin(), from.begin() + i), product(to.begin(), to.begin() + k)) &&
         same(product(from.begin() + i + 1, from.end()), product(to.begin() + k + 1, to.end()));
}

std::optional<Chain> read(Node& first) {
  Node* view = only_reader(*first.output());
  Node* last = view && view->is("Reshape") && view->input(0) == first.output() ? only_reader(*view->output()) : nullptr;
  if (!last || !last->is("Transpose") || &last->graph() != &first.graph()) return {};
  const Ints away = first.attrs.ints("perm"), back = last->attrs.ints("perm");
  const Shape &from = first.output()->shape(), &to = view->output()->shape();
  if (!from.has_rank() || !to.has_rank() || away.size() != from.rank() || back.size() != to.rank()) return {};
  const auto place = std::ranges::find(away, static_cast<std::int64_t>(away.size()) - 1);
  if (place == away.end() || place + 1 == away.end()) return {};
  const auto at = static_cast<std::size_t>(place - away.begin()), then = static_cast<std::size_t>(back.back());
  if (!is_kept(from.dims(), at, to.dims(), then) || from[at].number() == 1) return {};
  return Chain{&first, view, last, at, then};
}

/// The same with axis `at` behind all others.
template <class List>
List with_last(List list, std::size_t at) {
  std::rotate(list.begin() + static_cast<std::ptrdiff_t>(at), list.begin() + static_cast<std::ptrdiff_t>(at) + 1,
              list.end());
  return list;
}

bool rewrite(const Chain& chain, Context& context) {
  const Extents from = with_last(chain.first->output()->shape().dims(), chain.at);
  const Extents to = with_last(chain.view->output()->shape().dims(), chain.then);
  const std::optional<Ints> target = reshape_target(from, to);
  if (!target || refuses_empty(*target)) return false;
  Ints back = chain.last->attrs.ints("perm");
  for (std::int64_t& axis : back) {
    if (axis == static_cast<std::int64_t>(chain.then)) {
      axis = static_cast<std::int64_t>(back.size()) - 1;
    } else if (axis > static_cast<std::int64_t>(chain.then)) {
      --axis;
    }
  }
  Graph& graph = chain.first->graph();
  Build build(graph, *chain.first, context);
  Value& x =
      build.op("Transpose", {chain.first->input(0)}, {{"perm", with_last(chain.first->attrs.ints("perm"), chain.at)}});
  Value& y = build.op("Reshape", {&x, &build.constant(tensor_of(*target), "shape")});
  Value& z = build.op("Transpose", {&y}, {{"perm", back}});
  graph.replace(*chain.last->output(), z);
  for (Node* node : {chain.last, chain.view, chain.first}) graph.erase(*node);
  context.hit("innermost-axis");
  return true;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  std::set<const Node*> gone;
  for (Node* node : nodes_of(graph, {"Transpose"})) {
    const std::optional<Chain> chain = gone.contains(node) ? std::nullopt : read(*node);
    if (!chain || !rewrite(*chain, context)) continue;
    gone.insert(chain->last);
    ++changes;
  }
  return changes;
}

}  // namespace

Pass innermost_axis() {
  return {.name = "innermost-axis",
          .doc = "The innermost axis stays where it is, which two Transposes take away and bring back",
          .run = run};
}

}  // namespace modelflow::passes
