// Einsum with two operands, and what is written as one -> Transpose and MatMul.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/normalize/equation.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

using namespace pattern;

bool has(const std::string& axes, char axis) { return axes.find(axis) != std::string::npos; }

/// "bij, bjk -> bik" in its parts; nothing for forms with an ellipsis, one operand or a repeated axis.
std::optional<Equation> split(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) return {};
  Equation e{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2), {}, {}, {}, {}};
  for (std::string axes : {e.a, e.b, e.y}) {
    if (!std::all_of(axes.begin(), axes.end(), [](unsigned char c) { return std::isalpha(c) != 0; })) return {};
    std::sort(axes.begin(), axes.end());
    if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return {};
  }
  return e;
}

std::optional<Equation> equation_of(const Node& node) { return split(node.attrs.text("equation")); }

Value& first(const Match& m, const Equation& e) { return m.value(e.swapped ? "b" : "a"); }
Value& second(const Match& m, const Equation& e) { return m.value(e.swapped ? "a" : "b"); }

Verdict is_product(const Match& m) {
  std::optional<Equation> e = equation_of(m.root());
  if (!e) return no("the equation has an ellipsis, a repeated axis or no two operands");
  if (Verdict verdict = classify(*e); !verdict) return verdict;
  const Value &a = first(m, *e), &b = second(m, *e);
  for (const auto& [value, axes] : {std::pair{&a, e->a}, std::pair{&b, e->b}})
    if (rank_of(value).value_or(0) != axes.size()) return no("its rank is unknown", value->name());
  return is_matrix_product(*e, a, b);
}

std::vector<Value*> product_of(const Match& m, Build& build) {
  Equation e = *equation_of(m.root());
  if (!classify(e)) return {};
  return {&matrix_product(build, e, first(m, e), second(m, e))};
}

/// How many axes of x stay, how many go, for abc,cd->abd and abcd,cde->abe: the last ones of x with all of a constant.
struct Linear {
  std::size_t rows, summed;
};

std::optional<Linear> linear_form(const Equation& e) {
  std::size_t summed = 0;
  while (summed < e.b.size() && has(e.a, e.b[summed])) ++summed;
  if (summed == 0 || summed == e.b.size() || summed >= e.a.size()) return {};
  const std::string rows = e.a.substr(0, e.a.size() - summed);
  const bool fits = e.a == rows + e.b.substr(0, summed) && e.y == rows + e.b.substr(summed);
  return fits ? std::optional(Linear{rows.size(), summed}) : std::nullopt;
}

Verdict is_linear(const Match& m) {
  const std::optional<Equation> e = equation_of(m.root());
  if (!e) return no("the equation has an ellipsis, a repeated axis or no two operands");
  if (!linear_form(*e)) return no("not the last axes of one operand with all of a constant");
  if (rank_of(&m.value("x")) != e->a.size()) return no("its rank is unknown", m.value("x").name());
  const Tensor& w = m.constant("w");
  if (w.rank() != e->b.size() || w.elements() == 0) return no("its rank is another", m.value("w").name());
  return same_extents(m.value("x").shape(), e->a, Shape::of(w.dims()), e->b, e->b.substr(0, linear_form(*e)->summed));
}

std::vector<Value*> linear_of(const Match& m, Build& build) {
  const Linear form = *linear_form(*equation_of(m.root()));
  const Tensor& w = m.constant("w");
  const std::span<const std::int64_t> dims = w.dims(), summed = dims.first(form.summed),
                                      columns = dims.subspan(form.summed);
  const auto ending_in = [&](Value& value, Ints last) -> Value& {
    Ints target(form.rows, 0);
    target.insert(target.end(), last.begin(), last.end());
    return build.op("Reshape", {&value, &build.constant(tensor_of(target), "shape")});
  };
  const std::int64_t depth = element_count(summed), width = element_count(columns);
  Value& x = summed.size() == 1 ? m.value("x") : ending_in(m.value("x"), {depth});
  Value& y = build.op("MatMul", {&x, &build.constant(w.reshaped({depth, width}), "w")});
  return {columns.size() == 1 ? &y : &ending_in(y, Ints(columns.begin(), columns.end()))};
}

}  // namespace

Pass normalize_einsum() {
  return rewrite("normalize-einsum",
                 "Einsum of two operands that is a matrix product, and what is written as one -> Transpose and MatMul.",
                 {{.name = "einsum-to-matmul",
                   .doc = "Einsum(bqhd,bkhd->bhqk) -> MatMul between Transposes",
                   .from = op("Einsum", {any("a"), any("b")}),
                   .when = {is_product},
                   .into = product_of},
                  {.name = "einsum-to-linear",
                   .doc = "Einsum(abc,cde->abde) with a constant -> Reshape(MatMul(x, w))",
                   .from = op("Einsum", {any("x"), constant("w")}),
                   .when = {is_linear},
                   .into = linear_of},
                  summed_product()});
}

}  // namespace modelflow::passes
