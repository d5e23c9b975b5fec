// Einsum with two operands -> Transpose and MatMul, where one axis is summed and one operand has a single axis of its
// own. With one on each side no reshape is needed and every extent may stay dynamic: attention in "bqhd,bkhd->bhqk"
// form and linear layers over heads are such. Several axes of the other one become the rows of one product
// ("bnhwc,hkc->bnhwk", positions of rows and columns): a product that repeats an operand would refuse an empty batch in
// ONNX Runtime.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

using namespace pattern;

bool has(const std::string& axes, char axis) { return axes.find(axis) != std::string::npos; }

/// The axes of both operands and the result, and how a matrix product sees them.
struct Equation {
  std::string a, b, y;
  std::string batch, rows, columns, summed;
  bool swapped = false;  ///< a is the second operand
};

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

Verdict classify(Equation& e) {
  for (const char axis : e.y) {
    const bool in_a = has(e.a, axis), in_b = has(e.b, axis);
    if (!in_a && !in_b) return no("the result has an axis that no operand has");
    (in_a && in_b ? e.batch : in_a ? e.rows : e.columns) += axis;
  }
  for (const char axis : e.a) {
    if (has(e.y, axis)) continue;
    if (!has(e.b, axis)) return no("an axis of one operand alone is summed");
    e.summed += axis;
  }
  for (const char axis : e.b)
    if (!has(e.y, axis) && !has(e.a, axis)) return no("an axis of one operand alone is summed");
  if (e.rows.empty() || e.columns.empty() || (e.rows.size() > 1 && e.columns.size() > 1) || e.summed.size() != 1)
    return no("not one axis on one side and one that is summed: a product would need reshapes");
  if (e.columns.size() > 1) {
    std::swap(e.a, e.b);
    std::swap(e.rows, e.columns);
    e.swapped = true;
  }
  return yes();
}

std::optional<Equation> equation_of(const Node& node) { return split(node.attrs.text("equation")); }

/// An axis of extent 1 is repeated to the other operand's, which a matrix product does not do with what it sums.
Verdict same_extents(const Shape& a, const std::string& a_axes, const Shape& b, const std::string& b_axes,
                     const std::string& summed) {
  for (const char axis : summed)
    if (!(a[a_axes.find(axis)] == b[b_axes.find(axis)]))
      return no(std::string("the axis '") + axis + "', which is joined or summed, may be 1 long in one operand alone");
  return yes();
}

Value& first(const Match& m, const Equation& e) { return m.value(e.swapped ? "b" : "a"); }
Value& second(const Match& m, const Equation& e) { return m.value(e.swapped ? "a" : "b"); }

/// Several axes become the rows of a matrix: of a product with matrices of a batch. One matrix alone takes any rows.
bool joins_rows(const Equation& e) { return e.rows.size() > 1 && !e.batch.empty(); }

Verdict is_product(const Match& m) {
  std::optional<Equation> e = equation_of(m.root());
  if (!e) return no("the equation has an ellipsis, a repeated axis or no two operands");
  if (Verdict verdict = classify(*e); !verdict) return verdict;
  Value &a = first(m, *e), &b = second(m, *e);
  for (const auto& [value, axes] : {std::pair{&a, e->a}, std::pair{&b, e->b}})
    if (rank_of(value).value_or(0) != axes.size()) return no("its rank is unknown", value->name());
  if (Verdict v = same_extents(a.shape(), e->a, b.shape(), e->b, e->summed); !v || !joins_rows(*e)) return v;
  if (Verdict v = same_extents(a.shape(), e->a, b.shape(), e->b, e->batch); !v) return v;
  for (const Value* value : {&a, &b})
    if (std::ranges::any_of(value->shape().dims(), [](const Dim& dim) { return dim.number() == 0; }))
      return no("it has no elements, and a Reshape takes 0 for an extent to copy", value->name());
  const auto unknown = [](const Shape& shape, const std::string& from, const std::string& axes) {
    return std::ranges::count_if(axes, [&](char axis) { return !shape[from.find(axis)].known(); });
  };
  const bool told = unknown(b.shape(), e->b, e->b) == 0 && unknown(a.shape(), e->a, e->rows) <= 1;
  return told ? yes() : no("its rows cannot be joined: extents are unknown", a.name());
}

/// `value` with its axes in another order; as it is when the order is that already.
Value& ordered(Build& build, Value& value, const std::string& from, const std::string& to) {
  if (from == to) return value;
  Ints perm;
  for (const char axis : to) perm.push_back(static_cast<std::int64_t>(from.find(axis)));
  return build.op("Transpose", {&value}, {{"perm", std::move(perm)}});
}

/// The extents of these axes; -1 where one is unknown.
Ints extents_of(const Shape& shape, const std::string& from, const std::string& axes) {
  Ints list;
  for (const char axis : axes) list.push_back(shape[from.find(axis)].number().value_or(-1));
  return list;
}

Value& reshaped(Build& build, Value& value, const std::vector<Ints>& parts) {
  Ints target;
  for (const Ints& part : parts) target.insert(target.end(), part.begin(), part.end());
  return build.op("Reshape", {&value, &build.constant(tensor_of(target), "shape")});
}

std::vector<Value*> product_of(const Match& m, Build& build) {
  Equation e = *equation_of(m.root());
  if (!classify(e)) return {};
  const Shape a_shape = first(m, e).shape(), b_shape = second(m, e).shape();
  Value* a = &ordered(build, first(m, e), e.a, e.batch + e.rows + e.summed);
  Value& b = ordered(build, second(m, e), e.b, e.batch + e.summed + e.columns);
  const Ints batch = extents_of(b_shape, e.b, e.batch);
  if (joins_rows(e)) a = &reshaped(build, *a, {batch, {-1}, extents_of(b_shape, e.b, e.summed)});
  Value* y = &build.op("MatMul", {a, &b});
  if (joins_rows(e))
    y = &reshaped(build, *y, {batch, extents_of(a_shape, e.a, e.rows), extents_of(b_shape, e.b, e.columns)});
  return {&ordered(build, *y, e.batch + e.rows + e.columns, e.y)};
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
  return rewrite("normalize-einsum", "Einsum of two operands that is a matrix product -> Transpose and MatMul.",
                 {{.name = "einsum-to-matmul",
                   .doc = "Einsum(bqhd,bkhd->bhqk) -> MatMul between Transposes",
                   .from = op("Einsum", {any("a"), any("b")}),
                   .when = {is_product},
                   .into = product_of},
                  {.name = "einsum-to-linear",
                   .doc = "Einsum(abc,cde->abde) with a constant -> Reshape(MatMul(x, w))",
                   .from = op("Einsum", {any("x"), constant("w")}),
                   .when = {is_linear},
                   .into = linear_of}});
}

}  // namespace modelflow::passes
