// Einsum with two operands, and what is written as one -> Transpose and MatMul.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/normalize/equation.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

using namespace pattern;

/// Of two operands, in its parts; nothing for what read_terms does not read.
std::optional<Equation> equation_of(const Node& node) {
  const std::optional<Terms> terms = read_terms(node.attrs.text("equation"));
  if (!terms || terms->operands.size() != 2) return {};
  return Equation{terms->operands[0], terms->operands[1], terms->y, {}, {}, {}, {}};
}

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

/// The equation of a matrix and a vector, where the vector is the second operand and a matrix of one column.
struct WithVector {
  Equation equation;
  const char *matrix, *vector;  ///< the names of the operands
};

std::optional<WithVector> with_vector(const Node& node) {
  std::optional<Equation> e = equation_of(node);
  if (!e) return {};
  const auto has_own = [](const std::string& axes, const std::string& other) {
    return std::ranges::any_of(axes, [&](char axis) { return !has_axis(other, axis); });
  };
  const bool first = has_own(e->a, e->b);
  if (first == has_own(e->b, e->a)) return {};
  if (!first) std::swap(e->a, e->b);
  char column = 'a';
  while (has_axis(e->a, column)) ++column;
  e->b += column;
  e->y += column;
  return WithVector{*e, first ? "a" : "b", first ? "b" : "a"};
}

Verdict is_product_with_vector(const Match& m) {
  std::optional<WithVector> found = with_vector(m.root());
  if (!found) return no("no product of a matrix and a vector");
  Equation& e = found->equation;
  const Value &matrix = m.value(found->matrix), &vector = m.value(found->vector);
  if (rank_of(&matrix) != e.a.size() || rank_of(&vector) != e.b.size() - 1) return no("a rank is unknown");
  if (Verdict verdict = classify(e); !verdict) return verdict;
  if (e.rows.size() > 1) return no("not one axis beside the one that is summed");
  return is_matrix_product(e, matrix, vector);
}

std::vector<Value*> product_with_vector(const Match& m, Build& build) {
  std::optional<WithVector> found = with_vector(m.root());
  if (!found || !classify(found->equation)) return {};
  Value& column = with_axes(build, "Unsqueeze", m.value(found->vector), {-1});
  return {&with_axes(build, "Squeeze", matrix_product(build, found->equation, m.value(found->matrix), column), {-1})};
}

/// How many axes of x stay, how many go, for abc,cd->abd and abcd,cde->abe: the last ones of x with all of a constant.
struct Linear {
  std::size_t rows, summed;
};

std::optional<Linear> linear_form(const Equation& e) {
  std::size_t summed = 0;
  while (summed < e.b.size() && has_axis(e.a, e.b[summed])) ++summed;
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
  return rewrite(
      "normalize-einsum",
      "Einsum that is a matrix product or an outer one, and what is written as one -> Transpose, MatMul and Mul.",
      {{.name = "einsum-to-matmul",
        .doc = "Einsum(bqhd,bkhd->bhqk) -> MatMul between Transposes",
        .from = op("Einsum", {any("a"), any("b")}),
        .when = {is_product},
        .into = product_of},
       {.name = "einsum-with-vector",
        .doc = "Einsum(bdn,bn->bd) -> MatMul with one column",
        .from = op("Einsum", {any("a"), any("b")}),
        .when = {is_product_with_vector},
        .into = product_with_vector},
       {.name = "einsum-to-linear",
        .doc = "Einsum(abc,cde->abde) with a constant -> Reshape(MatMul(x, w))",
        .from = op("Einsum", {any("x"), constant("w")}),
        .when = {is_linear},
        .into = linear_of},
       outer_product(2),
       outer_product(3),
       summed_product()});
}

}  // namespace modelflow::passes
