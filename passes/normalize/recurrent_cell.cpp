// LSTM and GRU cells known by the formulas of their gates.
#include "passes/normalize/recurrent_cell.h"

#include <algorithm>

#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

using State = Iteration::State;

bool is_one(const Value* value) { return const_number(value) == 1.0; }

/// The other operand of a commuting node one operand of which passes `test`; null when none does.
template <class Test>
Value* beside(const Node& node, const Iteration& it, Test test) {
  for (const std::size_t i : {0, 1})
    if (test(it.resolve(node.input(i)))) return it.resolve(node.input(1 - i));
  return nullptr;
}

class CellReader {
 public:
  CellReader(const Iteration& it, const State& h, std::int64_t hidden) : it_(it), h_(h), hidden_(hidden) {}

  std::optional<RecurrentCell> gru() const {
    const Node* sum = made_by(it_.resolve(h_.next), "Add");
    if (!sum) return {};
    for (const std::size_t i : {0, 1}) {
      Value *kept = it_.resolve(sum->input(i)), *fresh = it_.resolve(sum->input(1 - i));
      for (const bool negated : {false, true})
        if (std::optional<RecurrentCell> cell = mixed(kept, fresh, negated)) return cell;
      if (std::optional<RecurrentCell> cell = moved(fresh, kept)) return cell;
    }
    return {};
  }

  std::optional<RecurrentCell> lstm() const {
    const Node* out = made_by(it_.resolve(h_.next), "Mul");
    if (!out) return {};
    for (const std::size_t i : {0, 1}) {
      Value* o = it_.resolve(out->input(i));
      const Node* tanh = made_by(it_.resolve(out->input(1 - i)), "Tanh");
      if (!tanh) continue;
      const Value* next = it_.resolve(tanh->input(0));
      for (const State& c : it_.states)
        if (it_.resolve(c.next) == next)
          if (std::optional<RecurrentCell> cell = with_memory(c, *next, o)) return cell;
    }
    return {};
  }

 private:
  /// z * h + (1 - z) * n, or with the roles of both changed.
  std::optional<RecurrentCell> mixed(const Value* kept, const Value* fresh, bool negated) const {
    const Node *a = made_by(kept, "Mul"), *b = made_by(fresh, "Mul");
    if (!a || !b) return {};
    Value* with_h = beside(*a, it_, [&](const Value* v) { return v == h_.inside; });
    for (const std::size_t i : {0, 1}) {
      Value *with_n = it_.resolve(b->input(1 - i)), *n = it_.resolve(b->input(i));
      const Node* rest = made_by(negated ? with_h : with_n, "Sub");
      Value* z = negated ? with_n : with_h;
      if (with_h && rest && is_one(rest->input(0)) && it_.resolve(rest->input(1)) == z)
        if (std::optional<RecurrentCell> cell = gates(z, n, negated)) return cell;
    }
    return {};
  }

  /// n + z * (h - n)
  std::optional<RecurrentCell> moved(Value* n, const Value* step) const {
    const Node* product = made_by(step, "Mul");
    if (!product) return {};
    Value* z = beside(*product, it_, [&](const Value* v) {
      const Node* rest = made_by(v, "Sub");
      return rest && it_.resolve(rest->input(0)) == h_.inside && it_.resolve(rest->input(1)) == n;
    });
    return z ? gates(z, n, false) : std::nullopt;
  }

  static bool reads(const GateSum& sum, const Value* x) {
    return std::any_of(sum.products.begin(), sum.products.end(), [&](const auto& product) { return product.x == x; });
  }
  static bool reads_only(const GateSum& sum, const Value* x) {
    return std::all_of(sum.products.begin(), sum.products.end(), [&](const auto& product) { return product.x == x; });
  }

  bool activated(const Value* value, const char* op, GateSum& sum, const Value* memory = nullptr) const {
    const Node* node = made_by(value, op);
    return node && read_gate_sum(*node->input(0), hidden_, it_, sum, memory);
  }

  std::optional<RecurrentCell> gates(const Value* z, const Value* n, bool negated) const {
    RecurrentCell cell{.op = "GRU", .gates = std::vector<RecurrentCell::Gate>(3), .h = &h_};
    cell.gates[0].negated = negated;
    const Node* tanh = made_by(n, "Tanh");
    if (!tanh || !activated(z, "Sigmoid", cell.gates[0].x)) return {};
    if (reset_before(*tanh->input(0), cell) || reset_after(*tanh->input(0), cell)) return cell;
    return {};
  }

  /// tanh(x W + (r * h) R + b)
  bool reset_before(Value& inner, RecurrentCell& cell) const {
    GateSum sum;
    if (!read_gate_sum(inner, hidden_, it_, sum)) return false;
    if (reads(sum, h_.inside)) return false;
    for (const GateSum::Product& product : sum.products) {
      const Node* reset = made_by(product.x, "Mul");
      const Value* r = reset ? beside(*reset, it_, [&](const Value* v) { return v == h_.inside; }) : nullptr;
      GateSum gate;
      if (!r || !activated(r, "Sigmoid", gate)) continue;
      cell.gates[1].x = std::move(gate);
      cell.gates[2].x = std::move(sum);
      cell.reset = product.x;
      return true;
    }
    return false;
  }

  /// tanh(x W + b + r * (h R + c))
  bool reset_after(Value& inner, RecurrentCell& cell) const {
    const Node* sum = made_by(it_.resolve(&inner), "Add");
    for (const std::size_t i : {0, 1}) {
      const Node* reset = sum ? made_by(it_.resolve(sum->input(i)), "Mul") : nullptr;
      for (const std::size_t j : {0, 1}) {
        RecurrentCell::Gate r, n;
        if (!reset || !activated(it_.resolve(reset->input(j)), "Sigmoid", r.x)) continue;
        if (!read_gate_sum(*reset->input(1 - j), hidden_, it_, n.h)) continue;
        if (!read_gate_sum(*sum->input(1 - i), hidden_, it_, n.x)) continue;
        if (reads(n.x, h_.inside) || !reads_only(n.h, h_.inside)) continue;
        cell.gates[1] = std::move(r);
        cell.gates[2] = std::move(n);
        cell.linear_before_reset = true;
        return true;
      }
    }
    return false;
  }

  /// c' = f * c + i * g, h' = o * tanh(c')
  std::optional<RecurrentCell> with_memory(const State& c, const Value& next, const Value* o) const {
    const Node* sum = made_by(&next, "Add");
    for (const std::size_t a : {0, 1}) {
      const Node *kept = sum ? made_by(it_.resolve(sum->input(a)), "Mul") : nullptr,
                 *fresh = sum ? made_by(it_.resolve(sum->input(1 - a)), "Mul") : nullptr;
      if (!kept || !fresh) continue;
      const Value* f = beside(*kept, it_, [&](const Value* v) { return v == c.inside; });
      for (const std::size_t b : {0, 1}) {
        RecurrentCell cell{.op = "LSTM", .gates = std::vector<RecurrentCell::Gate>(4), .h = &h_, .c = &c};
        const Value *i = it_.resolve(fresh->input(b)), *g = it_.resolve(fresh->input(1 - b));
        // Peepholes of two gates see the memory as it was, that of the output gate as it will be.
        if (f && activated(i, "Sigmoid", cell.gates[0].x, c.inside) &&
            activated(o, "Sigmoid", cell.gates[1].x, &next) && activated(f, "Sigmoid", cell.gates[2].x, c.inside) &&
            activated(g, "Tanh", cell.gates[3].x))
          return cell;
      }
    }
    return {};
  }

  const Iteration& it_;
  const State& h_;
  std::int64_t hidden_;
};

}  // namespace

std::optional<RecurrentCell> read_cell(const Iteration& iteration, const State& h, std::int64_t hidden) {
  const CellReader reader(iteration, h, hidden);
  if (std::optional<RecurrentCell> cell = reader.gru()) return cell;
  return reader.lstm();
}

}  // namespace modelflow::passes
