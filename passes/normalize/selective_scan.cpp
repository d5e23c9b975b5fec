// The steps of a selective state space model written out, as exporters write its loop over time (Mamba's sequential
// form in transformers, the reference of mamba-ssm) -> modelflow.SelectiveScan.
#include <optional>

#include "modelflow/modelflow.h"
#include "passes/graph/depends.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/graph/stacks.h"
#include "passes/normalize/normalize.h"
#include "passes/normalize/scan_factors.h"

namespace modelflow::passes {
namespace {

constexpr const char* kRule = "selective-scan";

/// What every step does: h = kept[t] * h + added[t], and y[t] = h c[t].
struct Recurrence {
  Steps kept, added, c;
  Value* first = nullptr;  ///< the state before the first step
  Value* last = nullptr;   ///< the one behind the last
  std::int64_t steps = 0;
};

/// What `value` is step `t` of.
std::optional<Steps> step_of(const Value* value, std::int64_t t) {
  const Node* gather = made_by(value, "Gather");
  if (!gather || rank_of(gather->input(1)) != 0 || const_number(gather->input(1)) != static_cast<double>(t)) return {};
  const std::optional<std::size_t> rank = rank_of(gather->input(0));
  const std::optional<Ints> axis =
      rank ? positive({gather->attrs.integer("axis")}, static_cast<std::int64_t>(*rank)) : std::nullopt;
  return axis ? std::optional(Steps{gather->input(0), axis->front()}) : std::nullopt;
}

/// A value without axes of one element.
const Value* without_units(const Value* value) {
  while (made_by(value, "Unsqueeze") || made_by(value, "Squeeze")) value = value->producer()->input(0);
  return value;
}

/// One value with an axis of one element more, perhaps made twice.
bool same_column(const Value& a, const Value& b) {
  const Node *of_a = made_by(&a, "Unsqueeze"), *of_b = made_by(&b, "Unsqueeze");
  return &a == &b || (of_a && of_b && of_a->input(0) == of_b->input(0) && unit_axes(*of_a) == unit_axes(*of_b));
}

class Reader {
 public:
  explicit Reader(const Node& stack) : stack_(stack) {}

  /// A no without a reason where it is something else altogether.
  Verdict read(Recurrence& found) {
    found.steps = std::ssize(stack_.inputs());
    for (std::int64_t t = 0; t < found.steps; ++t)
      if (Verdict v = step(t, found); !v) return t == 0 ? no("") : v;
    return yes();
  }

 private:
  Verdict step(std::int64_t t, Recurrence& found) {
    const Node* product = made_by(without_units(stack_.input(static_cast<std::size_t>(t))), "MatMul");
    const Node* column = product ? made_by(product->input(1), "Unsqueeze") : nullptr;
    const std::optional<Steps> c = column ? step_of(column->input(0), t) : std::nullopt;
    Value* h = product ? product->input(0) : nullptr;
    if (!c || unit_axes(*column) != Ints{2} || rank_of(h) != 3) return no("a step is no product of state and column");
    const Node* sum = made_by(h, "Add");
    for (const std::size_t i : {0, 1}) {
      const std::optional<Steps> added = sum ? step_of(sum->input(i), t) : std::nullopt;
      const Node* kept = added ? made_by(sum->input(1 - i), "Mul") : nullptr;
      for (const std::size_t j : {0, 1}) {
        const std::optional<Steps> decay = kept ? step_of(kept->input(j), t) : std::nullopt;
        if (decay) return follows({*decay, *added, *c, kept->input(1 - j), h, 0}, t, found);
      }
    }
    return no("a step does not keep a part of the state and add to it");
  }

  static Verdict follows(const Recurrence& step, std::int64_t t, Recurrence& found) {
    if (t == 0) {
      const std::int64_t steps = found.steps;
      found = step;
      found.steps = steps;
      return yes();
    }
    if (step.kept != found.kept || step.added != found.added || step.c != found.c || step.first != found.last)
      return no("a step is of another recurrence");
    if (found.last->uses().size() != 2 || found.last->is_graph_output())
      return no("a state in between is read elsewhere");
    found.last = step.last;
    return yes();
  }

  const Node& stack_;
};

/// The operands of the fused op.
struct Operands {
  ScanFactors decay, added;
  std::optional<ScanAxes> decay_axes, added_axes;
  bool scales_b = false;

  Verdict read(const Recurrence& found) {
    const Node* exp = made_by(found.kept.all, "Exp");
    if (!exp) return no("what is kept is no exponential", found.kept.all->name());
    for (const Steps* steps : {&found.kept, &found.added})
      if (rank_of(steps->all) != 4) return no("is not of rank 4", steps->all->name());
    decay_axes.emplace(found.kept.axis);
    added_axes.emplace(found.added.axis);
    if (!decay.read(*exp->input(0), *decay_axes, {decay_axes->batch, decay_axes->time}))
      return no("is no product of time steps and rates", exp->input(0)->name());
    if (!read_added(*found.added.all))
      return no("is no product of rows and columns, in this order", found.added.all->name());
    return fits(found);
  }

 private:
  /// u b, or (delta b) u: in no other order, so that products beyond the range come out as they did.
  bool read_added(const Value& product) {
    if (added.read(product, *added_axes, {added_axes->channel})) return true;
    const Node* node = made_by(&product, "Mul");
    for (const std::size_t i : {0, 1}) {
      if (!node || decay_axes->time != added_axes->time || !has_axes(*node->input(i), product, {added_axes->state}) ||
          !added.read(*node->input(1 - i), *added_axes, {added_axes->channel}) || !same_column(*added.row, *decay.row))
        continue;
      added.row = node->input(i);
      return scales_b = true;
    }
    return false;
  }

  /// Nothing is repeated in a step, and all sequences are of one length.
  Verdict fits(const Recurrence& found) const {
    const Shape &kept = found.kept.all->shape(), &sum = found.added.all->shape(), &c = found.c.all->shape();
    const auto at = [](const Shape& shape, std::int64_t axis) { return shape[static_cast<std::size_t>(axis)]; };
    const ScanAxes &k = *decay_axes, &a = *added_axes;
    for (const auto& [in_kept, in_added] : {std::pair{k.batch, a.batch}, std::pair{k.time, a.time},
                                            std::pair{k.channel, a.channel}, std::pair{k.state, a.state}})
      if (at(kept, in_kept) != at(sum, in_added))
        return no("is not known to be of the same extents", found.kept.all->name());
    if (c.rank() != 3) return no("is not of rank 3", found.c.all->name());
    const std::int64_t time = found.c.axis;
    if (at(c, time) != at(sum, a.time) || at(c, time == 0 ? 1 : 0) != at(sum, a.batch) ||
        at(c, time == 2 ? 1 : 2) != at(sum, a.state))
      return no("is not known to be of the same extents", found.c.all->name());
    return yes();
  }
};

/// The order of three axes with the first or the last in the middle, and the other way round.
Ints exchanged_with_second(std::int64_t axis) { return axis == 0 ? Ints{1, 0, 2} : Ints{0, 2, 1}; }

class Fusing {
 public:
  Fusing(Graph& graph, Context& context, Node& stack) : graph_(graph), context_(context), stack_(stack) {}

  Verdict fuse() {
    Recurrence found;
    if (Verdict v = Reader(stack_).read(found); !v) return v;
    Operands operands;
    if (Verdict v = operands.read(found); !v) return v;
    if (Verdict v = stacked_along(found); !v) return v;
    const bool has_state = !is_zero(*found.first);
    if (has_state && found.first->shape() != found.last->shape()) return no("may be repeated", found.first->name());
    if (depends({found.kept.all, found.added.all, found.c.all}, {found.last->producer()}))
      return no("a sequence is computed from the steps");
    return build(found, operands, has_state);
  }

 private:
  /// Each part [batch, channels] with an axis of one element at `axis_`.
  Verdict stacked_along(const Recurrence& found) {
    const Value& part = *stack_.input(0);
    axis_ = positive({stack_.attrs.integer("axis")}, 3).value_or(Ints{3}).front();
    if (rank_of(&part) != 3 || axis_ > 2) return no("is not of rank 3", part.name());
    std::vector<Dim> wanted = found.last->shape().dims();
    wanted.pop_back();
    wanted.insert(wanted.begin() + axis_, Dim(1));
    for (const Value* each : stack_.inputs())
      if (each->shape() != Shape(wanted)) return no("is not known to be a row of channels", each->name());
    return yes();
  }

  Verdict build(const Recurrence& found, const Operands& operands, bool has_state) {
    const std::size_t readers = found.last->uses().size();
    const bool keep_state = readers > 1 || found.last->is_graph_output();
    Build build(graph_, stack_, context_);
    const ScanAxes &kept = *operands.decay_axes, &added = *operands.added_axes;
    std::vector<Value*> inputs = {&laid_out(build, *operands.added.row, {added.batch, added.time, added.channel}),
                                  &laid_out(build, *operands.decay.row, {kept.batch, kept.time, kept.channel}),
                                  &laid_out(build, *operands.decay.other, {kept.channel, kept.state}),
                                  &laid_out(build, *operands.added.other, {added.batch, added.time, added.state}),
                                  found.c.all};
    if (found.c.axis != 1)
      inputs[4] = &build.op("Transpose", {inputs[4]}, {{"perm", exchanged_with_second(found.c.axis)}});
    if (has_state) inputs.push_back(found.first);
    Attrs attrs;
    attrs.set("steps", found.steps)
        .set("scales_b", operands.scales_b ? 1 : 0)
        .set("has_state", has_state ? 1 : 0)
        .set("keep_state", keep_state ? 1 : 0);
    Node* fused = make_fused(graph_, context_, kRule, "modelflow.SelectiveScan", std::move(inputs), std::move(attrs),
                             stack_, keep_state ? 2 : 1);
    if (!fused) return no("");
    Value* y = fused->output();
    if (axis_ != 1) y = &build.op("Transpose", {y}, {{"perm", exchanged_with_second(axis_)}});
    graph_.replace(*stack_.output(), *y);
    if (keep_state) graph_.replace(*found.last, *fused->output(1));
    context_.hit(kRule);
    return yes();
  }

  Graph& graph_;
  Context& context_;
  Node& stack_;
  std::int64_t axis_ = 0;  ///< of time in the result
};

int run(Graph& graph, Context& context) {
  return fuse_stacks(graph, context, kRule, [&](Node& stack) {
    const bool may = stack.inputs().size() >= 2 && context.model.opset() >= 13;
    return may ? Fusing(graph, context, stack).fuse() : no("");
  });
}

}  // namespace

Pass selective_scan() {
  return {.name = "selective-scan",
          .doc = "Steps of a selective state space model, written out -> modelflow.SelectiveScan",
          .run = run};
}

}  // namespace modelflow::passes
