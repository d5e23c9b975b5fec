// Einsum, and what is written as one -> Transpose and MatMul.
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

/// Axes for abc,cde->abde and abcd,ecd->abe: the last ones of x are summed with a constant that has them and the
/// columns, in any order.
struct Linear {
  std::size_t rows;  ///< how many axes of x stay
  std::string summed, columns;
};

std::optional<Linear> linear_form(const Equation& e) {
  std::size_t rows = e.a.size();
  while (rows > 0 && has_axis(e.b, e.a[rows - 1])) --rows;
  if (rows == 0 || rows == e.a.size() || e.y.size() <= rows) return {};
  const Linear form{rows, e.a.substr(rows), e.y.substr(rows)};
  const std::string mine = form.summed + form.columns;
  const bool fits = e.y.substr(0, rows) == e.a.substr(0, rows) && std::ranges::is_permutation(mine, e.b);
  return fits ? std::optional(form) : std::nullopt;
}

Verdict is_linear(const Match& m) {
  const std::optional<Equation> e = equation_of(m.root());
  if (!e) return no("the equation has an ellipsis, a repeated axis or no two operands");
  const std::optional<Linear> form = linear_form(*e);
  if (!form) return no("not the last axes of one operand with all of a constant");
  if (rank_of(&m.value("x")) != e->a.size()) return no("its rank is unknown", m.value("x").name());
  const Tensor& w = m.constant("w");
  if (w.rank() != e->b.size() || w.elements() == 0) return no("its rank is another", m.value("w").name());
  return same_extents(m.value("x").shape(), e->a, Shape::of(w.dims()), e->b, form->summed);
}

std::vector<Value*> linear_of(const Match& m, Build& build) {
  const Equation e = *equation_of(m.root());
  const Linear form = *linear_form(e);
  const Tensor& w = m.constant("w");
  const auto dims_of = [&](const std::string& axes) {
    Ints dims;
    for (const char axis : axes) dims.push_back(w.dims()[e.b.find(axis)]);
    return dims;
  };
  const auto ending_in = [&](Value& value, const Ints& last) -> Value& {
    Ints target(form.rows, 0);
    target.insert(target.end(), last.begin(), last.end());
    return build.op("Reshape", {&value, &build.constant(tensor_of(target), "shape")});
  };
  const Ints summed = dims_of(form.summed), columns = dims_of(form.columns);
  const std::int64_t depth = element_count(summed), width = element_count(columns);
  Value& x = summed.size() == 1 ? m.value("x") : ending_in(m.value("x"), {depth});
  Value* matrix = nullptr;
  if (form.summed + form.columns == e.b) {
    matrix = &build.constant(w.reshaped({depth, width}), "w");
  } else {  // folded soon
    Value& turned = ordered(build, m.value("w"), e.b, form.summed + form.columns);
    matrix = &build.op("Reshape", {&turned, &build.constant(tensor_of({depth, width}), "shape")});
  }
  Value& y = build.op("MatMul", {&x, matrix});
  return {columns.size() == 1 ? &y : &ending_in(y, columns)};
}

/// The axes of one operand, all of them, in another order.
Verdict is_transpose(const Match& m) {
  const std::optional<Terms> terms = read_terms(m.root().attrs.text("equation"));
  if (!terms || terms->operands.size() != 1) return no("the equation has an ellipsis or a repeated axis");
  if (!std::ranges::is_permutation(terms->operands[0], terms->y)) return no("axes are summed");
  return rank_of(&m.value("x")) == terms->y.size() ? yes() : no("its rank is unknown", m.value("x").name());
}

std::vector<Value*> transpose_of(const Match& m, Build& build) {
  const Terms terms = *read_terms(m.root().attrs.text("equation"));
  return {&ordered(build, m.value("x"), terms.operands[0], terms.y)};
}

}  // namespace

Pass normalize_einsum() {
  return rewrite("normalize-einsum",
                 "Einsum that is a matrix product, an outer one or a Transpose, and what is written as one -> "
                 "Transpose, MatMul and Mul.",
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
                  {.name = "einsum-to-transpose",
                   .doc = "Einsum(ijbn->bnij) -> Transpose",
                   .from = op("Einsum", {any("x")}),
                   .when = {is_transpose},
                   .into = transpose_of},
                  outer_product(2),
                  outer_product(3),
                  summed_product()});
}

}  // namespace modelflow::passes
