// A Loop or Scan read: its trips counted, its states and sequences told apart.
#include "passes/normalize/iteration.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::int64_t kMostTrips = 4096;  ///< that are counted one by one

std::optional<double> one_number(const Value* value) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  if (!tensor || tensor->elements() != 1) return {};
  if (tensor->dtype() == DType::boolean) return tensor->as<bool>()[0];
  return const_number(value);
}

/// The numbers of a body, one trip after the other: what its condition and its counters come to.
class Counting {
 public:
  explicit Counting(const Iteration& iteration) : it_(iteration) {
    for (const Iteration::State& state : it_.states)
      if (const auto number = one_number(state.initial)) states_[state.inside] = *number;
  }

  void begin(std::int64_t trip) {
    known_.clear();
    known_[it_.number] = static_cast<double>(trip);
    known_[it_.keep_going] = 1;
    for (const auto& [state, number] : states_) known_[state] = number;
  }

  void end() {
    std::map<const Value*, double> next;
    for (const Iteration::State& state : it_.states)
      if (const auto number = states_.contains(state.inside) ? of(state.next) : std::nullopt)
        next[state.inside] = *number;
    states_ = std::move(next);
  }

  std::optional<double> of(const Value* value) {
    if (!value) return {};
    if (const auto found = known_.find(value); found != known_.end()) return found->second;
    std::optional<double> number = value->constant() ? one_number(value) : computed(value->producer());
    if (number && !held(*number, value->dtype())) number.reset();
    return known_[value] = number;
  }

 private:
  /// What float32 does not hold would be rounded in the body, and integers wrap.
  static bool held(double number, DType type) {
    if (static_cast<double>(static_cast<float>(number)) != number) return false;
    if (type == DType::i32) return std::abs(number) < 0x1p31;
    return type != DType::i64 || std::abs(number) < 0x1p63;
  }

  std::optional<double> computed(const Node* node) {
    if (!node || !node->domain().empty() || &node->graph() != it_.body) return {};
    if (!counted(node->output()->dtype())) return {};
    for (const char* same : {"Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape"})
      if (node->is(same)) {
        const auto x = of(node->input(0));
        return x ? std::optional(as(node->output()->dtype(), *x)) : x;
      }
    if (node->is("Not")) {
      const auto x = of(node->input(0));
      return x ? std::optional<double>(*x == 0) : std::nullopt;
    }
    if (node->inputs().size() != 2) return {};
    const auto a = of(node->input(0)), b = of(node->input(1));
    if (!a || !b) return {};
    return combined(node->op(), *a, *b);
  }

  static bool counted(DType type) {
    return type == DType::i64 || type == DType::i32 || type == DType::f32 || type == DType::boolean;
  }

  static double as(DType type, double x) {
    if (type == DType::boolean) return x != 0;
    return type == DType::f32 ? x : std::trunc(x);
  }

  static std::optional<double> combined(const std::string& op, double a, double b) {
    if (op == "Add") return a + b;
    if (op == "Sub") return a - b;
    if (op == "Mul") return a * b;
    if (op == "Less") return a < b;
    if (op == "LessOrEqual") return a <= b;
    if (op == "Greater") return a > b;
    if (op == "GreaterOrEqual") return a >= b;
    if (op == "Equal") return a == b;
    if (op == "And") return a != 0 && b != 0;
    if (op == "Or") return a != 0 || b != 0;
    return {};
  }

  const Iteration& it_;
  std::map<const Value*, double> states_;
  std::unordered_map<const Value*, std::optional<double>> known_;
};

/// How often a Loop runs: until its condition is false, at most as often as it says.
Verdict count_trips(Iteration& it) {
  const Value *most = it.node->input(0), *first = it.node->input(1), *condition = it.body->outputs()[0];
  if (first && one_number(first) != 1) return no("whether it begins is computed", first->name());
  const std::optional<Ints> limit = const_ints(most);
  if (most && (!limit || limit->size() != 1)) return no("how often it runs is computed", most->name());
  const std::int64_t bound = most ? limit->front() : kMostTrips + 1;
  Counting counting(it);
  for (it.trips = 0; it.trips < bound;) {
    if (it.trips == kMostTrips) return no("it runs too often, or the end is not in sight");
    counting.begin(it.trips++);
    const std::optional<double> more = counting.of(condition);
    if (!more) return no("its condition is computed", condition->name());
    if (*more == 0) break;
    counting.end();
  }
  return it.trips > 0 ? yes() : no("it never runs");
}

Verdict read_loop(Node& node, Iteration& it) {
  const std::size_t states = node.inputs().size() - 2;
  if (it.body->inputs().size() != states + 2 || it.body->outputs().size() < states + 1) return no("");
  it.number = it.body->inputs()[0];
  it.keep_going = it.body->inputs()[1];
  for (std::size_t i = 0; i < states; ++i)
    it.states.push_back({it.body->inputs()[i + 2], node.input(i + 2), it.body->outputs()[i + 1], node.output(i)});
  for (std::size_t i = states + 1; i < it.body->outputs().size(); ++i)
    it.stacks.push_back({it.body->outputs()[i], node.output(i - 1)});
  return count_trips(it);
}

bool only_zeros(const Ints& values) {
  return std::all_of(values.begin(), values.end(), [](std::int64_t v) { return v == 0; });
}

Verdict read_scan(Node& node, Iteration& it) {
  const auto sequences = static_cast<std::size_t>(node.attrs.integer("num_scan_inputs"));
  if (sequences == 0 || sequences > node.inputs().size() || it.body->inputs().size() != node.inputs().size())
    return no("");
  for (const char* name : {"scan_input_axes", "scan_output_axes", "scan_input_directions", "scan_output_directions"})
    if (!only_zeros(node.attrs.ints(name))) return no("it goes along another axis, or backwards");
  const std::size_t states = node.inputs().size() - sequences;
  for (std::size_t i = 0; i < states; ++i)
    it.states.push_back({it.body->inputs()[i], node.input(i), it.body->outputs()[i], node.output(i)});
  for (std::size_t i = states; i < node.inputs().size(); ++i)
    it.sequences.push_back({it.body->inputs()[i], node.input(i)});
  for (std::size_t i = states; i < it.body->outputs().size(); ++i)
    it.stacks.push_back({it.body->outputs()[i], node.output(i)});
  const Value& first = *it.sequences[0].all;
  if (rank_of(&first).value_or(0) < 1 || !first.shape()[0].known()) return no("how often it runs is unknown");
  it.trips = first.shape()[0].value();
  return it.trips > 0 ? yes() : no("it never runs");
}

/// A Loop or Scan of a known number of trips; a no with the reason.
Verdict read_iteration(Node& node, Iteration& it) {
  const Subgraph* body = node.attrs.graph("body");
  if (!body || !(*body)->pinned.empty()) return no("");
  it.node = &node;
  it.body = body->get();
  return node.is("Loop") ? read_loop(node, it) : read_scan(node, it);
}

}  // namespace

const Iteration::State* Iteration::state_of(const Value* inside) const {
  for (const State& state : states)
    if (state.inside == inside) return &state;
  return nullptr;
}

Value* Iteration::resolve(Value* value) const {
  while (value) {
    const Node* node = value->producer();
    if (node && node->is("Identity")) {
      value = node->input(0);
      continue;
    }
    const State* state = state_of(value);
    if (!state) return value;
    const Node* next = state->next->producer();
    const bool kept = state->next == value || (next && next->is("Identity") && next->input(0) == value);
    if (!kept) return value;
    value = state->initial;
  }
  return value;
}

bool Iteration::counts(const Value* value) const {
  const auto plain = [](const Value* v) {
    const Node* node = v->producer();
    while (node && (node->is("Cast") || node->is("Identity") || node->is("Unsqueeze") || node->is("Squeeze"))) {
      v = node->input(0);
      node = v->producer();
    }
    return v;
  };
  const Value* counter = plain(value);
  if (number && counter == number) return true;
  const State* state = state_of(counter);
  if (!state || one_number(state->initial) != 0.0) return false;
  const Node* next = plain(state->next)->producer();
  if (!next || !next->is("Add")) return false;
  return (next->input(0) == counter && one_number(next->input(1)) == 1.0) ||
         (next->input(1) == counter && one_number(next->input(0)) == 1.0);
}

int rewrite_loops(Graph& graph, Context& context, const char* rule,
                  Verdict (*rewrite)(const Iteration& iteration, Context& context)) {
  const std::vector<Node*> nodes = nodes_of(graph, {"Loop", "Scan"});
  int changes = 0;
  for (Node* node : nodes) {
    Iteration iteration;
    Verdict verdict = read_iteration(*node, iteration);
    if (verdict) verdict = rewrite(iteration, context);
    if (verdict) context.hit(rule);
    if (!verdict && !verdict.reason.empty()) context.miss(rule, node, verdict.reason);
    changes += verdict.ok;
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace modelflow::passes
