// A Loop or Scan whose body is one step of an LSTM or a GRU -> LSTM, GRU. TensorFlow's cells come as such, and the
// scripted loops of PyTorch.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"
#include "passes/normalize/recurrent_cell.h"

namespace modelflow::passes {
namespace {

using State = Iteration::State;

/// Writes the standard op in place of the loop.
class Rewrite {
 public:
  Rewrite(const Iteration& it, RecurrentCell cell, std::int64_t hidden, Context& context)
      : it_(it), cell_(std::move(cell)), hidden_(hidden), build_(it.node->graph(), *it.node, context) {}

  Verdict run() {
    if (Verdict v = find_input(); !v) return v;
    if (Verdict v = check_states(); !v) return v;
    if (Verdict v = check_results(); !v) return v;
    std::vector<Value*> inputs = {sequence(), &weights(), &recurrent_weights(), &biases(), nullptr, state(*cell_.h)};
    if (cell_.c) inputs.push_back(state(*cell_.c));
    if (Value* peepholes = this->peepholes()) inputs.push_back(peepholes);
    Attrs attrs;
    attrs.set("hidden_size", hidden_);
    if (cell_.linear_before_reset) attrs.set("linear_before_reset", 1);
    Value& y = build_.op(cell_.op, std::move(inputs), std::move(attrs), cell_.c ? 3 : 2);
    write_results(*y.producer());
    return yes();
  }

 private:
  Graph& graph() { return build_.graph(); }

  /// The one value besides the state that all gates multiply.
  Verdict find_input() {
    for (const RecurrentCell::Gate& gate : cell_.gates) {
      for (const GateSum* sum : {&gate.x, &gate.h}) {
        for (const GateSum::Product& product : sum->products) {
          if (product.x == cell_.reset && &gate != &cell_.gates.back()) return no("another gate reads the reset state");
          if (product.x == cell_.h->inside || product.x == cell_.reset) continue;
          if (x_ && product.x != x_) return no("the gates read different inputs", product.x->name());
          x_ = product.x;
          depth_ = product.rows;
        }
      }
    }
    if (!x_) return no("the gates read no input");
    for (const Iteration::Sequence& sequence : it_.sequences)
      if (sequence.step == x_) all_ = sequence.all;
    if (const Node* gather = x_->producer(); gather && gather->is("Gather")) {
      Value* all = it_.resolve(gather->input(0));
      const bool outside = all && &all->graph() != it_.body;
      const bool row = rank_of(gather->input(1)) == 0 && gather->attrs.integer("axis") == 0;
      if (outside && row && it_.counts(gather->input(1))) all_ = all;
    }
    if (!all_) return no("its input is not the element of a sequence at this step", x_->name());
    if (rank_of(all_) != 3 || all_->dtype() != DType::f32) return no("the sequence is not of rank 3", all_->name());
    return all_->shape()[0].known() ? yes() : no("the sequence is of unknown length", all_->name());
  }

  Verdict check_states() const {
    for (const State* state : {cell_.h, cell_.c})
      if (state && (rank_of(state->initial) != 2 || !(state->initial->shape()[0] == all_->shape()[1]) ||
                    state->initial->shape()[1].number() != hidden_))
        return no("its first state may be repeated", state->initial->name());
    return yes();
  }

  static bool read(const Value* value) { return value && (!value->uses().empty() || value->is_graph_output()); }

  /// Which state's series or last element an output of the loop is.
  Verdict check_results() const {
    for (const State& state : it_.states)
      if (read(state.last) && &state != cell_.h && &state != cell_.c && it_.resolve(state.inside) == state.inside)
        return no("another state of the loop is read", state.last->name());
    for (const Iteration::Stack& stack : it_.stacks)
      if (read(stack.all) && it_.resolve(stack.step) != it_.resolve(cell_.h->next))
        return no("it collects something else", stack.all->name());
    return yes();
  }

  Value* sequence() {
    if (all_->shape()[0] == Dim(it_.trips)) return all_;
    return &slice(build_, *all_, 0, 0, it_.trips);
  }

  Value& constant(const std::vector<float>& numbers, Dims dims, const char* stem) {
    return build_.constant(Tensor::of<float>(std::move(dims), std::span<const float>(numbers)), stem);
  }

  /// Of each gate what `part` gives, one after the other, as many numbers as `each`.
  template <class Part>
  std::vector<float> listed(std::int64_t each, Part part) const {
    std::vector<float> all;
    for (const RecurrentCell::Gate& gate : cell_.gates) {
      std::vector<float> numbers = part(gate);
      numbers.resize(static_cast<std::size_t>(each));
      for (const float number : numbers) all.push_back(gate.negated ? -number : number);
    }
    return all;
  }

  std::int64_t rows() const { return static_cast<std::int64_t>(cell_.gates.size()) * hidden_; }

  Value& weights() {
    const auto of = [&](const RecurrentCell::Gate& gate) { return gate.x.weights_of(x_, hidden_); };
    return constant(listed(hidden_ * depth_, of), {1, rows(), depth_}, "W");
  }

  Value& recurrent_weights() {
    const auto of = [&](const RecurrentCell::Gate& gate) {
      for (const Value* h : {static_cast<const Value*>(cell_.h->inside), cell_.reset})
        for (const GateSum* sum : {&gate.x, &gate.h})
          if (std::vector<float> found = sum->weights_of(h, hidden_); h && !found.empty()) return found;
      return std::vector<float>();
    };
    return constant(listed(hidden_ * hidden_, of), {1, rows(), hidden_}, "R");
  }

  Value& biases() {
    std::vector<float> all = listed(hidden_, [&](const RecurrentCell::Gate& gate) { return gate.x.bias(hidden_); });
    const std::vector<float> more =
        listed(hidden_, [&](const RecurrentCell::Gate& gate) { return gate.h.bias(hidden_); });
    all.insert(all.end(), more.begin(), more.end());
    return constant(all, {1, 2 * rows()}, "B");
  }

  /// Of all gates but the last; null when there are none.
  Value* peepholes() {
    std::vector<float> all;
    bool any = false;
    for (const RecurrentCell::Gate& gate : cell_.gates) {
      any = any || !gate.x.peepholes.empty();
      const std::vector<float> one = gate.x.peephole(hidden_);
      all.insert(all.end(), one.begin(), one.end());
    }
    all.resize(static_cast<std::size_t>(3 * hidden_));
    return any ? &constant(all, {1, 3 * hidden_}, "P") : nullptr;
  }

  Value* state(const State& state) { return &with_axes(build_, "Unsqueeze", *state.initial, {0}); }

  void write_results(Node& made) {
    for (const State& state : it_.states) {
      if (!read(state.last)) continue;
      const std::size_t i = &state == cell_.h ? 1 : 2;
      const bool kept = &state != cell_.h && &state != cell_.c;
      graph().replace(*state.last,
                      kept ? *it_.resolve(state.inside) : with_axes(build_, "Squeeze", *made.output(i), {0}));
    }
    for (const Iteration::Stack& stack : it_.stacks)
      if (read(stack.all)) graph().replace(*stack.all, with_axes(build_, "Squeeze", *made.output(0), {1}));
    graph().erase(*it_.node);
  }

  const Iteration& it_;
  RecurrentCell cell_;
  std::int64_t hidden_, depth_ = 0;
  Build build_;
  const Value* x_ = nullptr;
  Value* all_ = nullptr;
};

Verdict convert(const Iteration& it, Context& context) {
  for (const State& h : it.states) {
    const std::optional<std::size_t> rank = rank_of(h.initial);
    if (rank != 2 || !h.initial->shape()[1].known()) continue;
    const std::int64_t hidden = h.initial->shape()[1].value();
    if (std::optional<RecurrentCell> cell = read_cell(it, h, hidden))
      return Rewrite(it, std::move(*cell), hidden, context).run();
  }
  return no("its body is no step of an LSTM or GRU");
}

int run(Graph& graph, Context& context) { return rewrite_loops(graph, context, "recurrent-loop", convert); }

}  // namespace

Pass recurrent_loops() {
  return {
      .name = "recurrent-loops", .doc = "A Loop or Scan over the steps of an LSTM or a GRU -> LSTM, GRU", .run = run};
}

}  // namespace modelflow::passes
