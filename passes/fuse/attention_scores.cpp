// From a Softmax back to the product of queries and keys and on to the product with the values.
#include "passes/fuse/attention_scores.h"

#include <algorithm>
#include <numeric>

#include "passes/fuse/attention_heads.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

using Kind = ScoreStep::Kind;

/// The last two extents, those of 1 left out; nothing when there are not two, or one of the last two is 1 itself.
std::optional<std::pair<Dim, Dim>> rows_and_columns(const Shape& shape, bool skip) {
  std::vector<Dim> dims = shape.dims();
  if (skip) std::erase_if(dims, [](const Dim& dim) { return dim.number() == 1; });
  if (dims.size() < 2 || dims.back().number() == 1 || dims[dims.size() - 2].number() == 1) return {};
  return std::pair(dims[dims.size() - 2], dims.back());
}

/// Looks at the scores with other leading axes, [batch * heads] instead of [batch, heads]; rows and columns stay.
bool is_view(const Node& node) {
  if (!node.is("Reshape") && !node.is("Squeeze") && !node.is("Unsqueeze") && !node.is("Identity")) return false;
  const Shape &shape = node.input(0)->shape(), &after = node.output()->shape();
  if (!shape.has_rank() || shape.rank() < 3) return false;
  const std::size_t rank = shape.rank();
  // Whatever becomes of the leading axes: the same extents at the end are the same rows and columns. Axes of extent 1
  // may stand anywhere, also between and behind them.
  // With five axes and one of extent 1 among them, that one is none of the scores' own (Keras writes [B, heads, S, S,
  // 1] and [B, heads, S, 1, S]).
  const auto is_one = [](const Dim& dim) { return dim.number() == 1; };
  const bool spare = rank >= 5 && std::ranges::count_if(shape.dims(), is_one) == 1;
  if (const auto last = after.has_rank() ? rows_and_columns(shape, spare) : std::nullopt;
      last && last == rows_and_columns(after, true))
    return true;
  if (after.has_rank() && after.rank() >= 3 && shape.back() == after.back() &&
      shape[rank - 2] == after[after.rank() - 2])
    return true;
  StridedView view(shape);
  if (!view.follow(*node.output()) || view.axes().size() < 3) return false;
  const StridedView before(shape);
  const auto same = [](const StridedView::Axis& a, const StridedView::Axis& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.axis == y.axis && x.extent == y.extent && x.stride == y.stride;
    });
  };
  const std::size_t from = before.axes().size(), to = view.axes().size();
  return same(before.axes()[from - 1], view.axes()[to - 1]) && same(before.axes()[from - 2], view.axes()[to - 2]);
}

bool is_product(const Node& node) {
  if (!node.is("MatMul") || node.input(0)->constant() || node.input(1)->constant()) return false;
  return rank_of(node.input(0)).value_or(0) >= 3 && rank_of(node.input(0)) == rank_of(node.input(1));
}

/// A number so low that softmax gives it no weight beside any score `x`.
std::optional<float> low_number(const Value* value, const Value& x) {
  const std::optional<double> number = number_beside(value, rank_of(&x).value_or(0));
  if (!number || *number > kLow) return {};
  return static_cast<float>(*number);
}

/// Walks back from `value`, which only the node in front of it reads; fills the steps from the last to the first.
class Walk {
 public:
  explicit Walk(Core& core) : core_(core) {}

  bool back(Value& value) {
    Node* node = value.producer();
    furthest_ = &value;
    if (!node || &node->graph() != &value.graph() || !value.shape().has_rank()) return false;
    if (is_product(*node)) {
      if (!only_reader(value)) return shared(value);
      core_.scores = node;
      core_.nodes.insert(node);
      return true;
    }
    Value* x = nullptr;
    if (const std::optional<float> number = scaled(*node, x))
      return step(*node, *x, ScoreStep{Kind::scale, *number, nullptr, {}});
    if (node->is("Tanh")) return step(*node, *node->input(0), ScoreStep{Kind::tanh, 0, nullptr, {}});
    if (is_view(*node)) return step(*node, *node->input(0), {});
    if (node->is("Reshape")) return grid(*node);
    if (node->is("Add")) return sum(*node);
    if (node->is("Where")) return choice(*node);
    return false;
  }

  const Value* read_elsewhere() const { return read_elsewhere_; }
  const Value* furthest() const { return furthest_; }  ///< back from the softmax, on the way tried last

 private:
  bool shared(const Value& value) {
    read_elsewhere_ = &value;
    return false;
  }

  bool step(Node& node, Value& x, std::optional<ScoreStep> step) {
    const std::size_t before = core_.steps.size();
    if (step) {
      step->scores = x.shape();
      core_.steps.push_back(*step);
    }
    if (!back(x)) {
      core_.steps.resize(before);
      return false;
    }
    if (!only_reader(*node.output())) return shared(*node.output());
    core_.nodes.insert(&node);
    return true;
  }

  /// The scores seen as [..., queries of a grid, keys of a grid], and numbers of rows and columns added one by one, as
  /// MViT and SAM have them.
  bool grid(Node& back_to_keys) {
    Node* second = back_to_keys.input(0)->producer();
    if (!second || !second->is("Add") || !only_reader(*second->output())) return false;
    for (const std::size_t i : {0, 1}) {
      Node* first = second->input(i)->producer();
      if (!first || !first->is("Add") || !only_reader(*first->output())) continue;
      for (const std::size_t j : {0, 1}) {
        Node* view = first->input(j)->producer();
        if (!view || !view->is("Reshape") || !only_reader(*view->output())) continue;
        Value& x = *view->input(0);
        const std::optional<GridSum> sum = grid_sum(*first->input(1 - j), *second->input(1 - i));
        if (!sum || !(x.shape() == back_to_keys.output()->shape())) continue;
        if (!is_grid(view->output()->shape(), x.shape(), *sum)) continue;
        ScoreStep step{Kind::grid, 0, sum->rows, x.shape()};
        step.columns = sum->columns;
        const std::size_t before = core_.steps.size();
        core_.steps.push_back(step);
        if (back(x)) {
          core_.nodes.insert({&back_to_keys, second, first, view});
          return true;
        }
        core_.steps.resize(before);
      }
    }
    return false;
  }

  /// [..., queries, keys] as [..., queries of a grid, high, wide].
  static bool is_grid(const Shape& seen, const Shape& scores, const GridSum& sum) {
    if (!seen.has_rank() || seen.rank() < 3 || !scores.back().known()) return false;
    return seen[seen.rank() - 2].number() == sum.high && seen.back().number() == sum.wide &&
           scores.back().number() == sum.high * sum.wide;
  }

  /// Either operand may be the mask.
  bool sum(Node& node) {
    for (const std::size_t i : {0, 1}) {
      Value &x = *node.input(i), &mask = *node.input(1 - i);
      if (x.constant() || only_reader(x) != &node) continue;
      if (step(node, x, ScoreStep{Kind::add, 0, &mask, {}})) return true;
    }
    return false;
  }

  /// Where(allowed, x, low) and Where(masked, low, x).
  bool choice(Node& node) {
    for (const std::size_t i : {1, 2}) {
      const std::optional<float> low = low_number(node.input(3 - i), *node.input(i));
      if (!low || node.input(i)->constant()) continue;
      if (step(node, *node.input(i), ScoreStep{i == 1 ? Kind::keep : Kind::drop, *low, node.input(0), {}})) return true;
    }
    return false;
  }

  Core& core_;
  const Value *read_elsewhere_ = nullptr, *furthest_ = nullptr;
};

/// Where(IsNaN(weights), 0, weights), the only readers of the weights; null when it is not there.
Node* nan_guard(const Value& weights) {
  if (weights.uses().size() != 2 || weights.is_graph_output()) return nullptr;
  for (const Use& use : weights.uses()) {
    Node& node = *use.node;
    if (!node.is("Where") || use.index != 2 || number_beside(node.input(1), rank_of(&weights).value_or(0)) != 0.0)
      continue;
    const Node* test = node.input(0)->producer();
    if (test && test->is("IsNaN") && test->input(0) == &weights && only_reader(*node.input(0))) return &node;
  }
  return nullptr;
}

/// The product of the values with the transposed weights (YOLO's attention over an image); null when there is none.
Node* turned_product(const Node& transpose) {
  const Ints perm = transpose.attrs.ints("perm");
  Ints swapped(perm.size());
  std::iota(swapped.begin(), swapped.end(), 0);
  if (!transpose.is("Transpose") || perm.size() < 3) return nullptr;
  std::swap(swapped[perm.size() - 1], swapped[perm.size() - 2]);
  Node* product = perm == swapped ? only_reader(*transpose.output()) : nullptr;
  const bool fits = product && is_product(*product) && product->input(1) == transpose.output() &&
                    product->input(0) != product->input(1);
  return fits ? product : nullptr;
}

/// On from the softmax to the product with the values.
Verdict read_context(Core& core) {
  Value* weights = core.softmax->output();
  while (true) {
    if (Node* guard = nan_guard(*weights)) {
      core.nan_guard = true;
      core.nodes.insert(guard);
      core.nodes.insert(guard->input(0)->producer());
      weights = guard->output();
      continue;
    }
    Node* reader = only_reader(*weights);
    if (!reader) return no("the weights are read elsewhere too", weights->name());
    if (is_product(*reader) && reader->input(0) == weights && reader->input(1) != weights) {
      core.context = reader;
      core.values = reader->input(1);
      core.nodes.insert(reader);
      return yes();
    }
    if (Node* product = turned_product(*reader)) {
      core.context = product;
      core.values = product->input(0);
      core.turned = true;
      core.nodes.insert({reader, product});
      return yes();
    }
    if (!is_view(*reader) || reader->input(0) != weights) return no("");
    core.nodes.insert(reader);
    weights = reader->output();
  }
}

}  // namespace

std::optional<GridSum> grid_sum(Value& a, Value& b) {
  const std::optional<std::size_t> rank = rank_of(&a);
  if (!rank || rank != rank_of(&b) || *rank < 3) return {};
  const auto side = [&](const Value& value, bool rows) {
    const Shape& shape = value.shape();
    return shape[*rank - (rows ? 1 : 2)].number() == 1 ? shape[*rank - (rows ? 2 : 1)].number() : std::nullopt;
  };
  for (const auto& [rows, columns] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const std::optional<std::int64_t> high = side(*rows, true), wide = side(*columns, false);
    if (high && wide) return GridSum{rows, columns, *high, *wide};
  }
  return {};
}

Verdict read_core(Node& softmax, Core& core) {
  core.softmax = &softmax;
  core.nodes.insert(&softmax);
  Value& scores = *softmax.input(0);
  const std::optional<std::size_t> rank = rank_of(&scores);
  const std::int64_t axis = softmax.attrs.integer("axis", -1);
  if (!rank || (axis != -1 && axis + 1 != static_cast<std::int64_t>(*rank))) return no("");
  Walk walk(core);
  if (!walk.back(scores)) {
    if (walk.read_elsewhere()) return no("the scores are read elsewhere too", walk.read_elsewhere()->name());
    // Weights of a product are those of an attention, whatever makes its scores.
    return read_context(core) ? no("no product of queries and keys leads to it", walk.furthest()->name()) : no("");
  }
  std::reverse(core.steps.begin(), core.steps.end());
  return read_context(core);
}

}  // namespace modelflow::passes
