// Two graphs walked from their outputs, pair by pair.
#include "src/text/equal.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "modelflow/pass.h"

namespace modelflow {
namespace {

constexpr double kRounding = 1e-6;

bool close(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) ||
         std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
}

bool close(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  if (a.same_content(b)) return true;
  if (!is_float(a.dtype())) return false;
  auto x = a.to_doubles(), y = b.to_doubles();
  return std::equal(x.begin(), x.end(), y.begin(), [](double p, double q) { return close(p, q); });
}

// Dims that say different numbers; symbols and unknowns fit everything.
bool compatible(const Type& a, const Type& b) {
  if (a.kind == Type::Kind::unknown || b.kind == Type::Kind::unknown) return true;
  if (a.kind != b.kind) return false;
  if (!a.is_tensor()) return a.proto == b.proto;
  if (a.dtype != b.dtype) return false;
  if (!a.shape.has_rank() || !b.shape.has_rank()) return true;
  if (a.shape.rank() != b.shape.rank()) return false;
  for (std::size_t i = 0; i < a.shape.rank(); ++i) {
    if (a.shape[i].known() && b.shape[i].known() && !(a.shape[i] == b.shape[i])) return false;
  }
  return true;
}

// Walks two graphs from their outputs and pairs the values that must be equal.
class Comparison {
 public:
  bool run(const Graph& a, const Graph& b, bool named) {
    if (a.inputs().size() != b.inputs().size() || a.outputs().size() != b.outputs().size()) return false;
    if (a.nodes().size() != b.nodes().size()) return false;
    for (std::size_t i = 0; i < a.inputs().size(); ++i) {
      if (!same_interface(*a.inputs()[i], *b.inputs()[i], named) || !pair(a.inputs()[i], b.inputs()[i])) return false;
    }
    for (std::size_t i = 0; i < a.outputs().size(); ++i) {
      if (!same_interface(*a.outputs()[i], *b.outputs()[i], named) || !pair(a.outputs()[i], b.outputs()[i]))
        return false;
    }
    return drain();
  }

 private:
  static bool same_interface(const Value& a, const Value& b, bool named) {
    return (!named || a.name() == b.name()) && compatible(a.type, b.type);
  }

  bool pair(const Value* a, const Value* b) {
    if (!a || !b) return a == b;
    auto [entry, fresh] = partner_.emplace(a, b);
    if (!fresh) return entry->second == b || twins(entry->second, b);
    work_.emplace_back(a, b);
    return true;
  }

  // One constant that is read twice here may be two equal constants there.
  static bool twins(const Value* a, const Value* b) {
    return a->constant() && b->constant() && close(*a->constant(), *b->constant());
  }

  bool drain() {
    while (!work_.empty()) {
      auto [a, b] = work_.back();
      work_.pop_back();
      if (!same_source(*a, *b)) return false;
    }
    return true;
  }

  bool same_source(const Value& a, const Value& b) {
    if (a.is_graph_input() != b.is_graph_input()) return false;
    if (a.is_initializer() != b.is_initializer()) return false;
    if (a.is_initializer() && !close(*a.initializer(), *b.initializer())) return false;
    if (!a.producer() || !b.producer()) return !a.producer() && !b.producer();
    return a.output_index() == b.output_index() && same_node(*a.producer(), *b.producer());
  }

  bool same_node(const Node& a, const Node& b) {
    auto [entry, fresh] = nodes_.emplace(&a, &b);
    if (!fresh) return entry->second == &b;
    if (a.op() != b.op() || a.domain() != b.domain() || a.overload != b.overload) return false;
    if (a.inputs().size() != b.inputs().size()) return false;
    for (std::size_t i = 0; i < a.inputs().size(); ++i) {
      if (!pair(a.inputs()[i], b.inputs()[i])) return false;
    }
    return says_as_much(a, b) && says_as_much(b, a);
  }

  bool says_as_much(const Node& a, const Node& b) {
    return std::ranges::all_of(a.attrs, [&](const auto& item) {
      const Attr* other = b.attrs.find(item.first);
      return other && same_attr(item.second, *other);
    });
  }

  bool same_attr(const Attr& a, const Attr& b) {
    if (a.index() != b.index()) return false;
    if (auto* x = std::get_if<float>(&a)) return close(*x, std::get<float>(b));
    if (auto* x = std::get_if<Tensor>(&a)) return close(*x, std::get<Tensor>(b));
    if (auto* x = std::get_if<Floats>(&a)) {
      const auto& y = std::get<Floats>(b);
      return std::equal(x->begin(), x->end(), y.begin(), y.end(), [](float p, float q) { return close(p, q); });
    }
    if (auto* x = std::get_if<Subgraph>(&a)) return same_subgraph(*x, std::get<Subgraph>(b));
    if (auto* x = std::get_if<std::vector<Subgraph>>(&a)) {
      const auto& y = std::get<std::vector<Subgraph>>(b);
      return std::equal(x->begin(), x->end(), y.begin(), y.end(),
                        [&](const Subgraph& p, const Subgraph& q) { return same_subgraph(p, q); });
    }
    return equal(a, b);
  }

  // Values of enclosing graphs that a subgraph reads are paired like any other.
  bool same_subgraph(const Subgraph& a, const Subgraph& b) { return a && b ? run(*a, *b, false) : a == b; }

  std::unordered_map<const Value*, const Value*> partner_;
  std::unordered_map<const Node*, const Node*> nodes_;
  std::vector<std::pair<const Value*, const Value*>> work_;
};

bool same_function(const Function& a, const Function& b) {
  return a.domain == b.domain && a.name == b.name && a.overload == b.overload && a.attributes == b.attributes &&
         a.opsets == b.opsets && equal(a.defaults, b.defaults) && Comparison().run(*a.body, *b.body, false);
}

}  // namespace

bool equal(const Model& a, const Model& b) {
  if (a.opset() != b.opset() || a.functions.size() != b.functions.size()) return false;
  return Comparison().run(a.graph(), b.graph(), true) &&
         std::equal(a.functions.begin(), a.functions.end(), b.functions.begin(), same_function);
}

}  // namespace modelflow
