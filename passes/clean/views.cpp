// Chains of ops that only move elements, written with the fewest nodes.
#include <algorithm>
#include <numeric>

#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/graph/empty.h"
#include "passes/graph/facts.h"
#include "passes/graph/strided_view.h"

namespace modelflow::passes {

namespace {

/// The runs of a view in the order of the source, joined as far as they stay together: the shape to give the source,
/// how to transpose it then. Empty perm: no transpose is needed.
struct Plan {
  std::vector<Dim> blocks;
  Ints perm;
};

using Run = StridedView::Run;

/// The runs of one axis of the source, from the innermost on, by their places among all runs of the view.
std::vector<std::size_t> runs_of(std::size_t axis, const std::vector<Run>& runs) {
  std::vector<std::size_t> found;
  for (Dim stride = 1; found.size() < runs.size();) {
    const auto next = std::ranges::find_if(runs, [&](const Run& r) { return r.axis == axis && r.stride == stride; });
    if (next == runs.end()) break;
    found.push_back(static_cast<std::size_t>(next - runs.begin()));
    stride = stride * next->extent;
  }
  return found;
}

/// `join`: also across axes of the source, which has this rank. Nothing where the view is not all of its elements.
std::optional<Plan> plan_of(const StridedView& view, std::size_t rank, bool join) {
  std::vector<Run> runs;
  for (const StridedView::Axis& axis : view.axes())
    for (const Run& run : axis)
      if (run.extent.number() != 1) runs.push_back(run);
  Plan plan;
  std::vector<std::size_t> places;  // of each block in the result
  std::size_t seen = 0;
  for (std::size_t axis = 0, last = runs.size(); axis < rank; ++axis) {
    const std::vector<std::size_t> inwards = runs_of(axis, runs);
    seen += inwards.size();
    for (std::size_t i = inwards.size(); i-- > 0; last = inwards[i]) {
      const Run& run = runs[inwards[i]];
      if (last != runs.size() && inwards[i] == last + 1 && (join || run.axis == runs[last].axis)) {
        plan.blocks.back() = plan.blocks.back() * run.extent;
      } else {
        plan.blocks.push_back(run.extent);
        places.push_back(inwards[i]);
      }
    }
  }
  if (seen != runs.size()) return {};
  if (std::is_sorted(places.begin(), places.end())) return Plan{};
  plan.perm.resize(places.size());
  std::iota(plan.perm.begin(), plan.perm.end(), 0);
  std::ranges::sort(plan.perm, {}, [&](std::int64_t i) { return places[static_cast<std::size_t>(i)]; });
  return plan;
}

bool moves_view(const Node& node) {
  return is_view(node) && node.input(0) && node.output() && node.output()->shape().has_rank();
}

/// The only node that reads the elements of a value; null when there are several, or it is a graph output. Readers of
/// its shape alone mostly serve the targets of the chain itself.
const Node* element_reader(const Value& value) {
  if (value.is_graph_output()) return nullptr;
  const Node* reader = nullptr;
  for (const Use& use : value.uses()) {
    if (use.node->is("Shape")) continue;
    if (reader || &use.node->graph() != &value.graph()) return nullptr;
    reader = use.node;
  }
  return reader;
}

/// The axes of extent 1 by which `to` has more than `from`, where that is all the difference.
Ints added_units(const std::vector<Dim>& from, const std::vector<Dim>& to) {
  Ints axes;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t next = i - axes.size();
    if (next < from.size() && from[next] == to[i]) continue;
    if (to[i].number() != 1) return {};
    axes.push_back(static_cast<std::int64_t>(i));
  }
  return to.size() == from.size() + axes.size() ? axes : Ints{};
}

bool same(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Dim& x, const Dim& y) { return x == y; });
}

std::vector<Dim> permuted(const std::vector<Dim>& dims, const Ints& perm) {
  std::vector<Dim> out;
  for (const std::int64_t axis : perm) out.push_back(dims[static_cast<std::size_t>(axis)]);
  return out;
}

/// The same transpose of `from` as it is, where its blocks are those but for axes of extent 1: these stay where they
/// are, since ONNX Runtime is quick where one axis moves alone.
Plan with_units(const Plan& plan, const std::vector<Dim>& from) {
  std::vector<Dim> blocks;
  Ints others, perm(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].number() == 1) continue;
    others.push_back(static_cast<std::int64_t>(i));
    blocks.push_back(from[i]);
  }
  if (plan.perm.empty() || others.size() == from.size() || !same(blocks, plan.blocks)) return plan;
  std::iota(perm.begin(), perm.end(), 0);
  for (std::size_t i = 0; i < others.size(); ++i)
    perm[static_cast<std::size_t>(others[i])] = others[static_cast<std::size_t>(plan.perm[i])];
  return {from, perm};
}

Ints ascending(std::size_t rank) {
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  return perm;
}

Ints swapped(Ints perm) {
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return perm;
}

bool keeps_last(const Ints& perm) { return perm.empty() || perm.back() + 1 == static_cast<std::int64_t>(perm.size()); }

/// One chain, last node first, written anew: Reshape, Transpose, Reshape, as few of these as do it.
class Chain {
 public:
  explicit Chain(Node& end) {
    for (Node* node = &end; node && moves_view(*node) && &node->graph() == &end.graph();) {
      nodes_.push_back(node);
      Value* in = node->input(0);
      node = element_reader(*in) == nodes_.back() ? in->producer() : nullptr;
    }
  }

  /// True when it became shorter, or has fewer transposes.
  bool shorten(Graph& graph, Context& context) {
    // Symbolic dims of the start may not be enough for all: the longest part that can be told is taken.
    for (std::size_t length = nodes_.size(); length >= 2; --length)
      if (rewrite(graph, context, length)) return true;
    return false;
  }

 private:
  bool rewrite(Graph& graph, Context& context, std::size_t length) {
    Node &first = *nodes_[length - 1], &last = *nodes_[0];
    Value &x = *first.input(0), &y = *last.output();
    if (!x.type.is_tensor() || !x.shape().has_rank() || std::ranges::any_of(x.shape().dims(), &Dim::unknown))
      return false;
    StridedView view(x.shape());
    std::size_t transposes = 0;
    for (std::size_t i = length; i-- > 0;) {
      if (!view.follow(*nodes_[i]->output())) return false;
      transposes += nodes_[i]->is("Transpose") ? 1 : 0;
    }
    const std::optional<Steps> apart = steps(view, x, y, false), joined = steps(view, x, y, true);
    if (!apart || !joined) return false;
    const Steps& best = joined->count() < apart->count() ? *joined : *apart;
    if (best.count() >= length || (!best.plan.perm.empty() && transposes == 0)) return false;
    if (best.count() == 0 && y.is_graph_output()) return false;
    const auto end = nodes_.begin() + static_cast<std::ptrdiff_t>(length);
    const auto fails = [&](const Dim& copied) {
      return std::any_of(nodes_.begin(), end, [&](const Node* node) { return fails_without(*node, copied); });
    };
    return write(graph, context, best, x, y, last, fails);
  }

  /// Reshape, Transpose, Reshape and a swap of the last two axes, each where needed.
  struct Steps {
    Plan plan;
    std::vector<Dim> turned, to;
    bool before = false, after = false, swap = false;
    std::size_t count() const { return std::size_t{before} + !plan.perm.empty() + after + swap; }
  };

  static std::optional<Steps> steps(const StridedView& view, const Value& x, const Value& y, bool join) {
    const std::optional<Plan> plan = plan_of(view, x.shape().rank(), join);
    if (!plan) return {};
    Steps s{*plan, {}, y.shape().dims()};
    if (s.to.size() > 2 && !keeps_last(s.plan.perm) && feeds_product(y)) {
      // A product reads its operand transposed for nothing, and whole rows are quicker to move.
      StridedView other = view;
      const Ints swap = swapped(ascending(s.to.size()));
      other.transpose(swap);
      if (const auto rows = plan_of(other, x.shape().rank(), join); rows && keeps_last(rows->perm))
        s.plan = *rows, s.to = permuted(s.to, swap), s.swap = true;
    }
    const std::vector<Dim>& from = x.shape().dims();
    s.plan = with_units(s.plan, from);
    s.turned = s.plan.perm.empty() ? from : permuted(s.plan.blocks, s.plan.perm);
    s.before = !s.plan.perm.empty() && !same(from, s.plan.blocks);
    s.after = !same(s.turned, s.to);
    return s;
  }

  /// Whether the target, beside a -1, copies nothing but extents without which the chain fails as it is.
  template <class Fails>
  static bool fails_as_before(const std::vector<Dim>& from, const Ints& target, Fails fails) {
    for (std::size_t i = 0; i < target.size(); ++i)
      if (target[i] == 0 && !fails(from[i])) return false;
    return true;
  }

  /// `fails`: whether the chain does not take tensors without an element along this extent as it is.
  template <class Fails>
  static bool write(Graph& graph, Context& context, const Steps& s, Value& x, Value& y, Node& place, Fails fails) {
    const std::optional<Ints> in = reshape_target(x.shape().dims(), s.plan.blocks),
                              out = reshape_target(s.turned, s.to);
    if ((s.before && !in) || (s.after && !out)) return false;
    const bool first = s.before && refuses_empty(*in), second = s.after && refuses_empty(*out),
               safe = !first && !second;
    const bool fails_more = (first && !fails_as_before(x.shape().dims(), *in, fails)) ||
                            (second && !fails_as_before(s.turned, *out, fails));
    const Ints units = safe || context.model.opset() < 13 || s.before ? Ints{} : added_units(s.turned, s.to);
    if (fails_more && units.empty()) return false;
    Value* value = &x;
    const auto add = [&](const char* op, std::vector<Value*> inputs, Attrs attrs, const std::vector<Dim>& dims) {
      value = graph.add(op, std::move(inputs), {.before = &place, .attrs = std::move(attrs)}).output();
      value->type = Type::tensor(x.dtype(), Shape(dims));
    };
    const auto reshape = [&](const Ints& target, const std::vector<Dim>& dims) {
      add("Reshape", {value, &graph.add_constant(tensor_of(target), "shape")}, {}, dims);
    };
    if (s.before) reshape(*in, s.plan.blocks);
    if (!s.plan.perm.empty()) add("Transpose", {value}, {{"perm", s.plan.perm}}, s.turned);
    if (s.after && !units.empty())
      add("Unsqueeze", {value, &graph.add_constant(tensor_of(units), "axes")}, {}, s.to);
    else if (s.after)
      reshape(*out, s.to);
    if (s.swap) add("Transpose", {value}, {{"perm", swapped(ascending(s.to.size()))}}, y.shape().dims());
    graph.replace(y, *value);
    context.hit("view-chain");
    return true;
  }

  std::vector<Node*> nodes_;  // from the last to the first
};

int shorten_views(Graph& graph, Context& context) {
  std::vector<Node*> ends;
  for (const auto& node : graph.nodes()) {
    if (!moves_view(*node)) continue;
    const Node* reader = element_reader(*node->output());
    if (!reader || !moves_view(*reader)) ends.push_back(node.get());
  }
  int changes = 0;
  for (Node* end : ends) changes += Chain(*end).shorten(graph, context) ? 1 : 0;
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass views() {
  return {.name = "views",
          .doc = "Writes chains of Reshape, Transpose, Squeeze, Unsqueeze as one Reshape, Transpose, Reshape at most.",
          .run = shorten_views};
}

}  // namespace modelflow::passes
