// A forward and a reverse LSTM, GRU or RNN over the same sequence whose results are joined -> one that runs both ways.
#include "passes/normalize/recurrent_directions.h"

#include <algorithm>
#include <set>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/graph/strided_view.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

bool is_recurrent(const Node& node) { return node.is("LSTM") || node.is("GRU") || node.is("RNN"); }

/// What a value is of a recurrent output: which of its axes, in order. The axis of directions may be gone.
struct Source {
  Node* node = nullptr;                   ///< the recurrent node
  std::size_t output = 0;                 ///< which of its outputs
  std::optional<std::int64_t> half = {};  ///< of a layer that runs both ways
  Ints axes = {};
};

std::int64_t directions_axis(std::size_t output) { return output == 0 ? 1 : 0; }

/// Reads `node` as the choice of one direction of all that `source` has; false when it is none.
bool choose_half(const Node& node, const Value& value, Source& source) {
  const auto at = std::ranges::find(source.axes, directions_axis(source.output));
  if (at == source.axes.end() || direction(*source.node) != "bidirectional" || source.half) return false;
  const std::int64_t axis = at - source.axes.begin();
  if (positive({node.attrs.integer("axis", 0)}, static_cast<std::int64_t>(source.axes.size())) != Ints{axis})
    return false;
  if (node.is("Split")) {
    if (node.outputs().size() != 2) return false;
    source.half = static_cast<std::int64_t>(value.output_index());
    return true;
  }
  const std::optional<Ints> index = const_ints(node.input(1));
  if (!node.is("Gather") || !index || index->size() != 1 || node.input(1)->constant()->rank() > 1) return false;
  source.half = index->front() < 0 ? index->front() + 2 : index->front();
  if (node.input(1)->constant()->rank() == 0) source.axes.erase(at);
  return true;
}

/// A Reshape of one direction that moves nothing but axes of extent 1, or leaves out the one of directions. Axes of
/// extent 1 cannot be told apart: those that are left stand in their order.
bool reshape_axes(const Node& node, Ints& axes, std::int64_t directions) {
  const Shape &x = node.input(0)->shape(), &y = node.output()->shape();
  if (!node.is("Reshape") || !x.has_rank() || !y.has_rank() || x.rank() != axes.size() || y.rank() > x.rank())
    return false;
  StridedView view(x);
  if (!view.follow(*node.output())) return false;
  Ints order, units;
  std::set<std::int64_t> seen;
  for (const StridedView::Axis& axis : view.axes()) {
    const StridedView::Axis runs = StridedView::joined(axis);
    if (runs.size() > 1 || (runs.size() == 1 && runs[0].stride.number() != 1)) return false;
    if (!runs.empty() && runs[0].axis >= axes.size()) return false;  // repeated, or of nothing
    order.push_back(runs.empty() ? -1 : axes[runs[0].axis]);
    if (!runs.empty() && !seen.insert(order.back()).second) return false;
  }
  for (const std::int64_t axis : axes)
    if (!seen.contains(axis) && (y.rank() == x.rank() || axis != directions)) units.push_back(axis);
  if (std::ranges::count(order, -1) != static_cast<std::ptrdiff_t>(units.size())) return false;
  auto next = units.begin();
  for (std::int64_t& axis : order)
    if (axis == -1) axis = *next++;
  axes = order;
  return true;
}

std::optional<Source> source_of(Value& value) {
  Node* node = value.producer();
  if (!node || !value.type.is_tensor() || &node->graph() != &value.graph()) return {};
  if (is_recurrent(*node)) {
    if (node->attrs.integer("layout") != 0) return {};
    return Source{node, value.output_index(), {}, value.output_index() == 0 ? Ints{0, 1, 2, 3} : Ints{0, 1, 2}};
  }
  std::optional<Source> source = node->input(0) ? source_of(*node->input(0)) : std::nullopt;
  if (!source) return {};
  Ints& axes = source->axes;
  const auto directions = std::ranges::find(axes, directions_axis(source->output));
  if (node->is("Transpose")) {
    const Ints perm = node->attrs.ints("perm"), before = axes;
    if (perm.size() != axes.size()) return {};
    for (std::size_t i = 0; i < perm.size(); ++i) axes[i] = before[static_cast<std::size_t>(perm[i])];
    return source;
  }
  const bool one_way = source->half || direction(*source->node) != "bidirectional";
  if (one_way && directions != axes.end()) {
    const auto given = node->is("Squeeze") ? setting(*node, "axes", 1) : std::nullopt;
    const auto dropped = given ? positive(*given, static_cast<std::int64_t>(axes.size())) : std::nullopt;
    if (dropped == Ints{directions - axes.begin()}) {
      axes.erase(directions);
      return source;
    }
    if (reshape_axes(*node, axes, directions_axis(source->output))) return source;
  }
  return choose_half(*node, value, *source) ? source : std::nullopt;
}

/// What a node reads, and its graphs.
void add_reads(const Node& node, std::vector<const Value*>& to) {
  to.insert(to.end(), node.inputs().begin(), node.inputs().end());
  for (const Graph* graph : node.subgraphs()) {
    to.insert(to.end(), graph->outputs().begin(), graph->outputs().end());
    for (const auto& inner : graph->nodes()) add_reads(*inner, to);
  }
}

bool depends_on(const Value* value, const std::set<const Node*>& nodes, std::set<const Node*>& seen) {
  std::vector<const Value*> ahead = {value};
  while (!ahead.empty()) {
    const Node* node = ahead.back() ? ahead.back()->producer() : nullptr;
    ahead.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (nodes.contains(node)) return true;
    add_reads(*node, ahead);
  }
  return false;
}

/// The same value, or the same Transpose of it, which exporters write for each reader.
bool same_sequence(const Value& a, const Value& b) {
  const Node *first = a.producer(), *second = b.producer();
  if (&a == &b) return true;
  return first && second && first->is("Transpose") && second->is("Transpose") && first->input(0) == second->input(0) &&
         equal(first->attrs, second->attrs);
}

Verdict mergeable(const Node& forward, const Node& reverse) {
  if (&forward == &reverse || forward.op() != reverse.op()) return no("");
  if (direction(forward) != "forward" || direction(reverse) != "reverse") return no("");
  if (&forward.graph() != &reverse.graph()) return no("one of them stands in a branch or loop");
  if (!same_sequence(*forward.input(kX), *reverse.input(kX))) return no("they read different sequences");
  if (forward.input(kLengths) != reverse.input(kLengths)) return no("their sequences are of different lengths");
  for (const Node* node : {&forward, &reverse}) {
    for (const char* name : {"activations", "activation_alpha", "activation_beta"})
      if (node->attrs.has(name)) return no("an activation is not the usual one");
    for (const std::size_t i : {kW, kR, kB, kPeepholes})
      if (node->input(i) && (!node->input(i)->constant() || node->input(i)->dtype() != DType::f32))
        return no("is no float32 constant", node->input(i)->name());
  }
  for (const std::size_t i : {kW, kR, kB, kInitialH, kInitialC, kPeepholes}) {
    const Tensor* a = forward.input(i) ? forward.input(i)->constant() : nullptr;
    const Tensor* b = reverse.input(i) ? reverse.input(i)->constant() : nullptr;
    if (a && b && (a->rank() == 0 || a->dims() != b->dims()))
      return no("its shape is not that of the other direction", reverse.input(i)->name());
  }
  Attrs a = forward.attrs, b = reverse.attrs;
  a.erase("direction"), b.erase("direction");
  if (!equal(a, b)) return no("their attributes differ");
  std::set<const Node*> seen;
  for (const std::size_t i : {kB, kInitialH, kInitialC, kPeepholes}) {
    if (!forward.input(i) != !reverse.input(i)) return no("one of them has fewer inputs");
    if (depends_on(forward.input(i), {&reverse}, seen) || depends_on(reverse.input(i), {&forward}, seen))
      return no("one begins with what the other ends with");
  }
  return yes();
}

/// Both along the first axis, the one of directions.
Value& both_ways(Value& a, Value& b, Build& build) {
  if (!a.constant() || !b.constant() || a.dtype() != DType::f32)
    return build.op("Concat", {&a, &b}, {{"axis", std::int64_t{0}}});
  return build.constant(stacked({a.constant(), b.constant()}), a.name());
}

/// Leaves what nobody reads any more: nodes that the caller has listed may be among it.
void merge(Node& forward, Node& reverse, Context& context) {
  Graph& graph = forward.graph();
  Build build(graph, reverse, context);
  std::vector<Value*> inputs = forward.inputs();
  for (std::size_t i = kW; i < inputs.size(); ++i)
    if (inputs[i] && i != kLengths) inputs[i] = &both_ways(*inputs[i], *reverse.input(i), build);
  Attrs attrs = forward.attrs;
  attrs.set("direction", "bidirectional");
  const Node& both = *build.op(forward.op(), inputs, attrs, forward.is("LSTM") ? 3 : 2).producer();
  for (std::size_t i = 0; i < both.outputs().size(); ++i) {
    Attrs split = {{"axis", directions_axis(i)}};
    if (build.opset() >= 18) split.set("num_outputs", 2);
    const Node& parts = *build.op("Split", {both.output(i)}, split, 2).producer();
    for (const auto& [old, half] : {std::pair{&forward, parts.output(0)}, std::pair{&reverse, parts.output(1)}}) {
      if (!old->output(i)) continue;
      half->type = old->output(i)->type;
      graph.replace(*old->output(i), *half);
    }
  }
  graph.sort();  // readers of one direction may have stood in front of the other
  context.hit("recurrent-directions");
}

/// Both directions of one output side by side in its last axis, or one behind the other where their own axis stayed.
bool join_halves(Node& concat, const Source& first, const Source& second, Context& context) {
  if (first.node != second.node || first.output != second.output || first.half != 0 || second.half != 1) return false;
  if (first.axes != second.axes) return false;
  Value& whole = *first.node->output(first.output);
  const std::int64_t dirs = directions_axis(first.output), hidden = dirs + 2;
  const auto rank = static_cast<std::int64_t>(first.axes.size());
  const auto axis = positive({concat.attrs.integer("axis")}, rank);
  if (!axis) return false;
  const std::int64_t joined = first.axes[static_cast<std::size_t>(axis->front())];
  Build build(concat.graph(), concat, context);
  Ints perm = first.axes;
  if (joined == hidden && axis->front() == rank - 1 && std::ranges::find(perm, dirs) == perm.end()) {
    perm.insert(perm.end() - 1, dirs);
    Ints target(first.axes.size() - 1, 0);
    target.push_back(2 * first.node->attrs.integer("hidden_size"));
    Value& ordered = build.op("Transpose", {&whole}, {{"perm", perm}});
    concat.graph().replace(*concat.output(),
                           build.op("Reshape", {&ordered, &build.constant(tensor_of(target), "shape")}));
  } else if (joined == dirs) {
    concat.graph().replace(*concat.output(), build.op("Transpose", {&whole}, {{"perm", perm}}));
  } else {
    return false;
  }
  context.hit("recurrent-halves");
  return true;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  std::vector<Node*> layers, concats;
  for (const auto& node : graph.nodes()) {
    if (is_recurrent(*node)) layers.push_back(node.get());
    if (node->is("Concat") && node->inputs().size() == 2) concats.push_back(node.get());
  }
  if (layers.empty()) return 0;
  for (Node* layer : layers) changes += run_backwards(*layer, context);
  for (Node* concat : concats) {
    const std::optional<Source> a = source_of(*concat->input(0)), b = source_of(*concat->input(1));
    if (!a || !b || a->output != b->output || a->axes != b->axes) continue;
    if (const Verdict verdict = mergeable(*a->node, *b->node); verdict) {
      merge(*a->node, *b->node, context);
      ++changes;
    } else if (!verdict.reason.empty()) {
      context.miss("recurrent-directions", concat, verdict.reason);
    }
  }
  for (Node* concat : concats) {
    const std::optional<Source> a = source_of(*concat->input(0)), b = source_of(*concat->input(1));
    if (a && b) changes += join_halves(*concat, *a, *b, context);
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass merge_directions() {
  return {.name = "merge-directions",
          .doc = "A forward and a reverse LSTM, GRU or RNN whose results are joined -> one that runs both ways",
          .run = run};
}

}  // namespace modelflow::passes
