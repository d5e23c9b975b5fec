// The steps of an elementwise recurrence, written out as exporters write a loop over time (RWKV, SRU, QRNN, minimal
// GRUs), whatever their ops -> modelflow.PointwiseScan.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/unrolled_loop.h"
#include "passes/graph/depends.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/graph/stacks.h"

namespace modelflow::passes {
namespace {

constexpr const char* kRule = "pointwise-scan";
constexpr std::size_t kFewest = 3;  ///< steps

/// A value of rank n without an axis of one element that the row has beside its axes; the row itself where it has it.
Value* without_axis(Value& row, std::size_t axis) {
  const Node* view = row.producer();
  if (!view || !is_view(*view) || view->is("Transpose")) return &row;
  const Shape &before = view->input(0)->shape(), &after = row.shape();
  if (!before.has_rank() || before.rank() + 1 != after.rank()) return &row;
  std::vector<Dim> dims = before.dims();
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), Dim(1));
  return Shape(dims) == after ? view->input(0) : &row;
}

std::vector<Dim> without(const Shape& shape, std::size_t axis) {
  std::vector<Dim> dims = shape.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return dims;
}

/// The order of axes that brings `from` to place `to`.
Ints moved_axis(std::size_t rank, std::size_t from, std::size_t to) {
  Ints perm;
  for (std::size_t i = 0; i < rank; ++i)
    if (i != from) perm.push_back(static_cast<std::int64_t>(i));
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to), static_cast<std::int64_t>(from));
  return perm;
}

class Fusing {
 public:
  Fusing(Graph& graph, Context& context, Node& stack)
      : graph_(graph), context_(context), stack_(stack), loop_(context.model.opset()) {}

  /// The rows behind the first `skipped` ones.
  Verdict fuse(std::size_t skipped) {
    const std::optional<std::size_t> rank = rank_of(stack_.output());
    const std::optional<Ints> axis =
        rank ? positive({stack_.attrs.integer("axis")}, static_cast<std::int64_t>(*rank)) : std::nullopt;
    if (!axis || stack_.inputs().size() < skipped + kFewest) return no("");
    skipped_ = skipped;
    axis_ = static_cast<std::size_t>(axis->front());
    for (std::size_t i = skipped; i < stack_.inputs().size(); ++i) {
      Value* row = stack_.input(i);
      if (row->dtype() != DType::f32 || rank_of(row) != *rank || row->shape()[axis_].number() != 1) return no("");
      results_.push_back(without_axis(*row, axis_));
      if (results_.back() != row) views_.insert(row->producer());
    }
    if (Verdict v = loop_.read(results_); !v) return loop_.states().empty() ? no("") : v;
    if (Verdict v = fits(); !v) return v;
    return build();
  }

 private:
  /// All rows are steps of the sequences, of which nothing is read elsewhere.
  Verdict fits() {
    const UnrolledLoop::Sequence& x = loop_.sequences().front();
    step_ = without(x.all->shape(), x.axis);
    for (const UnrolledLoop::Sequence& other : loop_.sequences())
      if (Shape(without(other.all->shape(), other.axis)) != Shape(step_))
        return no("is not known to be of the same extents", other.all->name());
    for (std::size_t i = skipped_; i < stack_.inputs().size(); ++i)
      if (Shape(without(stack_.input(i)->shape(), axis_)) != Shape(step_))
        return no("is not known to be a step of the sequences", stack_.input(i)->name());
    unit_ = rank_of(results_.front()) != step_.size();
    std::unordered_set<const Node*> stack = views_;
    stack.insert(&stack_);
    if (Verdict v = loop_.is_apart(results_, stack); !v) return v;
    for (Value* row : results_)  // through a view that somebody else reads, too
      for (const Use& use : row->uses())
        if (views_.contains(use.node) &&
            (use.node->output()->uses().size() != 1 || use.node->output()->is_graph_output()))
          return no("is read outside of its step", row->name());
    return can_run_at_once();
  }

  Verdict can_run_at_once() const {
    std::unordered_set<const Node*> inside;
    for (const UnrolledLoop::Line& line : loop_.lines())
      for (const Value* value : line.column)
        if (value) inside.insert(value->producer());
    std::vector<const Value*> outside(loop_.constants().begin(), loop_.constants().end());
    for (const UnrolledLoop::Sequence& x : loop_.sequences()) outside.push_back(x.all);
    for (const UnrolledLoop::State& state : loop_.states()) outside.push_back(state.before.front());
    return depends(std::move(outside), inside) ? no("a sequence is computed from the steps") : yes();
  }

  Verdict build() {
    Build build(graph_, stack_, context_);
    const UnrolledLoop::Sequence& x = loop_.sequences().front();
    const std::size_t rank = step_.size() + 1;
    const std::size_t time = x.axis + 1 == rank && rank > 2 ? rank - 2 : x.axis;
    std::vector<Value*> inputs;
    for (const UnrolledLoop::Sequence& each : loop_.sequences())
      inputs.push_back(&moved(build, *each.all, each.axis, time));
    for (Value* constant : loop_.constants()) inputs.push_back(operand(build, *constant));
    for (const UnrolledLoop::State& state : loop_.states()) inputs.push_back(operand(build, *state.before.front()));
    for (const Value* input : inputs)
      if (!input) {
        build.undo();
        return no("something is not known to be repeated along a step");
      }
    const bool keep_state = std::ranges::any_of(
        loop_.states(), [&](const UnrolledLoop::State& state) { return is_read_outside(loop_.last(state)); });
    Node* fused = make_fused(graph_, context_, kRule, "modelflow.PointwiseScan", inputs, attributes(time, keep_state),
                             stack_, keep_state ? 1 + loop_.states().size() : 1);
    if (!fused) {
      build.undo();
      return no("");
    }
    Value* y = &moved(build, *fused->output(), time, axis_);
    if (skipped_) {
      std::vector<Value*> parts(stack_.inputs().begin(),
                                stack_.inputs().begin() + static_cast<std::ptrdiff_t>(skipped_));
      parts.push_back(y);
      y = &build.op("Concat", parts, {{"axis", static_cast<std::int64_t>(axis_)}});
    }
    graph_.replace(*stack_.output(), *y);
    for (std::size_t i = 0; keep_state && i < loop_.states().size(); ++i)
      if (Value* last = loop_.last(loop_.states()[i]))
        graph_.replace(
            *last, unit_ ? with_axes(build, "Unsqueeze", *fused->output(i + 1), {unit_axis()}) : *fused->output(i + 1));
    context_.hit(kRule);
    return yes();
  }

  bool is_read_outside(const Value* value) const {
    return value && (value->is_graph_output() || std::ranges::any_of(value->uses(), [&](const Use& use) {
                       return !views_.contains(use.node) && use.node != &stack_;
                     }));
  }

  Attrs attributes(std::size_t time, bool keep_state) const {
    std::vector<std::size_t> place(loop_.lines().size());
    for (std::size_t i = 0; i < place.size(); ++i) place[loop_.order()[i]] = i;
    std::string program;
    for (const std::size_t at : loop_.order()) {
      const UnrolledLoop::Line& line = loop_.lines()[at];
      program += (program.empty() ? "" : "; ") + line.op;
      for (const UnrolledLoop::Operand& from : line.from) program += name_of(from, place);
    }
    Ints next;
    for (const UnrolledLoop::State& state : loop_.states())
      next.push_back(static_cast<std::int64_t>(place[state.next]));
    Attrs attrs;
    attrs.set("program", program)
        .set("sequences", std::ssize(loop_.sequences()))
        .set("result", static_cast<std::int64_t>(place.front()))
        .set("next", next)
        .set("axis", static_cast<std::int64_t>(time))
        .set("first", loop_.first())
        .set("steps", std::ssize(results_))
        .set("keep_state", keep_state ? 1 : 0);
    return attrs;
  }

  std::string name_of(const UnrolledLoop::Operand& from, const std::vector<std::size_t>& place) const {
    using Kind = UnrolledLoop::Kind;
    if (from.kind == Kind::line) return " t" + std::to_string(place[from.index]);
    std::size_t at = from.index;
    if (from.kind != Kind::sequence) at += loop_.sequences().size();
    if (from.kind == Kind::state) at += loop_.constants().size();
    return " x" + std::to_string(at);
  }

  static Value& moved(Build& build, Value& value, std::size_t from, std::size_t to) {
    if (from == to) return value;
    return build.op("Transpose", {&value}, {{"perm", moved_axis(value.shape().rank(), from, to)}});
  }

  /// Where steps have an axis of one element in the place of time.
  std::int64_t unit_axis() const {
    const Shape& shape = results_.front()->shape();
    for (std::size_t i = 0; i < shape.rank(); ++i)
      if (shape[i].number() == 1 && Shape(without(shape, i)) == Shape(step_)) return static_cast<std::int64_t>(i);
    return 0;
  }

  /// The number that a state is everywhere, also where exporters compute it: zeros - 1e38.
  static std::optional<float> number_of(const Value& value) {
    if (const std::optional<double> number = fill_of(value)) return static_cast<float>(*number);
    const Node* node = value.producer();
    if (!node || node->inputs().size() != 2 || !node->domain().empty()) return {};
    const std::optional<double> a = fill_of(*node->input(0)), b = fill_of(*node->input(1));
    if (!a || !b || (!node->is("Add") && !node->is("Sub"))) return {};
    const auto p = static_cast<float>(*a), q = static_cast<float>(*b);
    return node->is("Add") ? p + q : p - q;
  }

  /// What a step reads beside the sequences, on the axes of a step: a number where it is one everywhere; null where it
  /// may be larger.
  Value* operand(Build& build, Value& value) {
    if (const std::optional<float> number = number_of(value); number && !value.constant())
      return &build.constant(Tensor::scalar(*number), "state");
    Value* x = &value;
    const std::optional<std::size_t> rank = rank_of(x);
    if (!rank || *rank > step_.size() + 1) return nullptr;
    if (unit_) {  // counted from the last axis on
      const auto behind = step_.size() - static_cast<std::size_t>(unit_axis());
      if (*rank > behind) {
        const std::size_t at = *rank - 1 - behind;
        if (x->shape()[at].number() != 1) return nullptr;
        x = &with_axes(build, "Squeeze", *x, {static_cast<std::int64_t>(at)});
      }
    }
    const Shape& shape = x->shape();
    if (!shape.has_rank() || shape.rank() > step_.size()) return nullptr;
    for (std::size_t i = 0; i < shape.rank(); ++i)
      if (shape[i].number() != 1 && !(shape[i] == step_[step_.size() - shape.rank() + i])) return nullptr;
    return x;
  }

  Graph& graph_;
  Context& context_;
  Node& stack_;
  UnrolledLoop loop_;
  std::size_t axis_ = 0, skipped_ = 0;  ///< of rows in the stack; rows that are no steps
  Column results_;
  std::unordered_set<const Node*> views_;  ///< that give results their place in the stack
  std::vector<Dim> step_;
  bool unit_ = false;  ///< steps have one axis more, of one element
};

int run(Graph& graph, Context& context) {
  if (context.model.opset() < 13) return 0;
  return fuse_stacks(graph, context, kRule, [&](Node& stack) {
    Verdict all = Fusing(graph, context, stack).fuse(0);
    if (all) return all;
    // The first step may leave out what it would multiply by a state of zeros.
    Verdict behind = Fusing(graph, context, stack).fuse(1);
    return behind || all.reason.empty() ? behind : all;
  });
}

}  // namespace

Pass fuse_pointwise_scan() {
  return {.name = "fuse-pointwise-scan",
          .doc = "Steps of an elementwise recurrence (RWKV, SRU, minimal GRU), written out -> modelflow.PointwiseScan",
          .run = run};
}

}  // namespace modelflow::passes
