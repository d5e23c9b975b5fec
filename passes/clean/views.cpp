// Chains of ops that only move elements, written with the fewest nodes.
#include "passes/clean/views.h"

#include <algorithm>
#include <numeric>

#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/graph/empty.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

View::View(const Shape& input) {
  for (const Dim& dim : input.dims()) {
    axes_.push_back({extents_.size()});
    origin_.push_back(extents_.size());
    source_.push_back(extents_.size());
    extents_.push_back(dim);
  }
}

bool View::transpose(const Ints& perm) {
  if (perm.size() != axes_.size()) return false;
  std::vector<std::vector<std::size_t>> axes;
  for (const std::int64_t axis : perm) {
    if (axis < 0 || static_cast<std::size_t>(axis) >= axes_.size()) return false;
    axes.push_back(axes_[static_cast<std::size_t>(axis)]);
  }
  axes_ = std::move(axes);
  return true;
}

bool View::split(std::size_t atom, const Dim& first) {
  const Dim rest = extents_[atom].divided_by(first);
  if (rest.unknown() || first.number() == 0) return false;
  const std::size_t added = extents_.size();
  extents_[atom] = first;
  extents_.push_back(rest);
  origin_.push_back(origin_[atom]);
  source_.insert(std::find(source_.begin(), source_.end(), atom) + 1, added);
  return true;
}

bool View::reshape(const Shape& shape) {
  if (!shape.has_rank()) return false;
  std::vector<std::size_t> queue;  // the atoms in the present order, those of extent 1 left out: they can be anywhere
  for (const auto& axis : axes_)
    for (const std::size_t atom : axis)
      if (extents_[atom].number() != 1) queue.push_back(atom);
  std::vector<std::vector<std::size_t>> axes;
  std::size_t next = 0;
  for (const Dim& dim : shape.dims()) {
    axes.emplace_back();
    Dim left = dim;
    while (left.number() != 1) {
      if (next == queue.size() || left.unknown()) return false;
      const std::size_t atom = queue[next];
      if (extents_[atom] == left) {
        left = 1;
      } else if (const Dim more = left.divided_by(extents_[atom]); !more.unknown()) {
        left = more;
      } else if (split(atom, left)) {
        queue.insert(queue.begin() + static_cast<std::ptrdiff_t>(next) + 1, extents_.size() - 1);
        left = 1;
      } else {
        return false;
      }
      axes.back().push_back(atom);
      ++next;
    }
  }
  axes_ = std::move(axes);
  return next == queue.size();
}

View::Plan View::plan(bool join) const {
  std::vector<std::size_t> order, position(extents_.size());
  for (const auto& axis : axes_)
    for (const std::size_t atom : axis)
      if (extents_[atom].number() != 1) order.push_back(atom);
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  Plan plan;
  std::vector<std::size_t> places;  // of each block in the result
  const std::size_t none = extents_.size();
  for (std::size_t last = none; const std::size_t atom : source_) {
    if (extents_[atom].number() == 1) continue;
    if (last != none && position[atom] == position[last] + 1 && (join || origin_[atom] == origin_[last])) {
      plan.blocks.back() = plan.blocks.back() * extents_[atom];
    } else {
      plan.blocks.push_back(extents_[atom]);
      places.push_back(position[atom]);
    }
    last = atom;
  }
  if (std::is_sorted(places.begin(), places.end())) return {{}, {}};
  for (std::size_t i = 0; i < places.size(); ++i) plan.perm.push_back(static_cast<std::int64_t>(i));
  std::sort(plan.perm.begin(), plan.perm.end(), [&](std::int64_t a, std::int64_t b) {
    return places[static_cast<std::size_t>(a)] < places[static_cast<std::size_t>(b)];
  });
  return plan;
}

namespace {

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

bool follow(View& view, const Node& node) {
  if (!node.is("Transpose")) return view.reshape(node.output()->shape());
  Ints perm = node.attrs.ints("perm");
  if (perm.empty())
    for (std::size_t i = node.output()->shape().rank(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  return view.transpose(perm);
}

/// A Reshape target: numbers, 0 where the input has the same dim, one -1; nullopt when more is open.
std::optional<Ints> target_of(const std::vector<Dim>& from, const std::vector<Dim>& to) {
  Ints target;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool copied = i < from.size() && from[i] == to[i];
    target.push_back(to[i].known() ? to[i].value() : copied ? 0 : -1);
    if (to[i].number() == 0) return std::nullopt;
  }
  return std::count(target.begin(), target.end(), -1) <= 1 ? std::optional(target) : std::nullopt;
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
    if (!x.type.is_tensor() || !x.shape().has_rank()) return false;
    View view(x.shape());
    std::size_t transposes = 0;
    for (std::size_t i = length; i-- > 0;) {
      if (!follow(view, *nodes_[i])) return false;
      transposes += nodes_[i]->is("Transpose") ? 1 : 0;
    }
    Steps best = steps(view, x, y, false);
    if (const Steps joined = steps(view, x, y, true); joined.count() < best.count()) best = joined;
    if (best.count() >= length || (!best.plan.perm.empty() && transposes == 0)) return false;
    if (best.count() == 0 && y.is_graph_output()) return false;
    const auto end = nodes_.begin() + static_cast<std::ptrdiff_t>(length);
    const bool fails = std::any_of(nodes_.begin(), end, [](const Node* node) { return fails_when_empty(*node); });
    return write(graph, context, best, x, y, last, fails);
  }

  /// Reshape, Transpose, Reshape and a swap of the last two axes, each where needed.
  struct Steps {
    View::Plan plan;
    std::vector<Dim> turned, to;
    bool before = false, after = false, swap = false;
    std::size_t count() const { return std::size_t{before} + !plan.perm.empty() + after + swap; }
  };

  static Steps steps(const View& view, const Value& x, const Value& y, bool join) {
    Steps s{view.plan(join), {}, y.shape().dims()};
    if (s.to.size() > 2 && !keeps_last(s.plan.perm) && feeds_product(y)) {
      // A product reads its operand transposed for nothing, and whole rows are quicker to move.
      View other = view;
      const Ints swap = swapped(ascending(s.to.size()));
      other.transpose(swap);
      if (View::Plan rows = other.plan(join); keeps_last(rows.perm))
        s.plan = rows, s.to = permuted(s.to, swap), s.swap = true;
    }
    const std::vector<Dim>& from = x.shape().dims();
    s.turned = s.plan.perm.empty() ? from : permuted(s.plan.blocks, s.plan.perm);
    s.before = !s.plan.perm.empty() && !same(from, s.plan.blocks);
    s.after = !same(s.turned, s.to);
    return s;
  }

  /// `fails`: the chain does not take empty tensors as it is.
  static bool write(Graph& graph, Context& context, const Steps& s, Value& x, Value& y, Node& place, bool fails) {
    const std::optional<Ints> in = target_of(x.shape().dims(), s.plan.blocks), out = target_of(s.turned, s.to);
    if ((s.before && !in) || (s.after && !out)) return false;
    const bool safe = !(s.before && refuses_empty(*in)) && !(s.after && refuses_empty(*out));
    const Ints units = safe || context.model.opset() < 13 || s.before ? Ints{} : added_units(s.turned, s.to);
    if (!safe && !fails && units.empty()) return false;
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
