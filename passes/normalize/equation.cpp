// Contractions of two operands as matrix products: one axis is summed, and one operand has a single axis of its own.
// With one on each side no reshape is needed and every extent may stay dynamic: attention in "bqhd,bkhd->bhqk"
// form and linear layers over heads are such. Several axes of the other one become the rows of one product
// ("bnhwc,hkc->bnhwk", positions of rows and columns): a product that repeats an operand would refuse an empty batch in
// ONNX Runtime.
#include "passes/normalize/equation.h"

#include <algorithm>
#include <sstream>

#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// Several axes become the rows of a matrix: of a product with matrices of a batch. One matrix alone takes any rows.
bool joins_rows(const Equation& e) { return e.rows.size() > 1 && !e.batch.empty(); }

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

bool names_each_axis_once(std::string axes) {
  if (!std::ranges::all_of(axes, [](unsigned char c) { return std::isalpha(c) != 0; })) return false;
  std::ranges::sort(axes);
  return std::ranges::adjacent_find(axes) == axes.end();
}

}  // namespace

std::optional<Terms> read_terms(std::string text) {
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) return {};
  Terms terms{{}, text.substr(arrow + 2)};
  std::istringstream left(text.substr(0, arrow));
  for (std::string axes; std::getline(left, axes, ',');) terms.operands.push_back(axes);
  const bool plain = std::ranges::all_of(terms.operands, names_each_axis_once) && names_each_axis_once(terms.y);
  return plain ? std::optional(terms) : std::nullopt;
}

Value& ordered(Build& build, Value& value, const std::string& from, const std::string& to) {
  if (from == to) return value;
  Ints perm;
  for (const char axis : to) perm.push_back(static_cast<std::int64_t>(from.find(axis)));
  return build.op("Transpose", {&value}, {{"perm", std::move(perm)}});
}

Verdict classify(Equation& e) {
  for (const char axis : e.y) {
    const bool in_a = has_axis(e.a, axis), in_b = has_axis(e.b, axis);
    if (!in_a && !in_b) return no("the result has an axis that no operand has");
    (in_a && in_b ? e.batch : in_a ? e.rows : e.columns) += axis;
  }
  for (const char axis : e.a) {
    if (has_axis(e.y, axis)) continue;
    if (!has_axis(e.b, axis)) return no("an axis of one operand alone is summed");
    e.summed += axis;
  }
  for (const char axis : e.b)
    if (!has_axis(e.y, axis) && !has_axis(e.a, axis)) return no("an axis of one operand alone is summed");
  if (e.rows.empty() || e.columns.empty() || (e.rows.size() > 1 && e.columns.size() > 1) || e.summed.size() != 1)
    return no("not one axis on one side and one that is summed: a product would need reshapes");
  if (e.columns.size() > 1) {
    std::swap(e.a, e.b);
    std::swap(e.rows, e.columns);
    e.swapped = true;
  }
  return yes();
}

/// An axis of extent 1 is repeated to the other operand's, which a matrix product does not do with what it sums.
Verdict same_extents(const Shape& a, const std::string& a_axes, const Shape& b, const std::string& b_axes,
                     const std::string& axes) {
  for (const char axis : axes)
    if (!(a[a_axes.find(axis)] == b[b_axes.find(axis)]))
      return no(std::string("the axis '") + axis + "', which is joined or summed, may be 1 long in one operand alone");
  return yes();
}

Verdict is_matrix_product(const Equation& e, const Value& a, const Value& b) {
  if (Verdict v = same_extents(a.shape(), e.a, b.shape(), e.b, e.summed); !v || !joins_rows(e)) return v;
  if (Verdict v = same_extents(a.shape(), e.a, b.shape(), e.b, e.batch); !v) return v;
  for (const Value* value : {&a, &b})
    if (std::ranges::any_of(value->shape().dims(), [](const Dim& dim) { return dim.number() == 0; }))
      return no("it has no elements, and a Reshape takes 0 for an extent to copy", value->name());
  const auto unknown = [](const Shape& shape, const std::string& from, const std::string& axes) {
    return std::ranges::count_if(axes, [&](char axis) { return !shape[from.find(axis)].known(); });
  };
  const bool told = unknown(b.shape(), e.b, e.b) == 0 && unknown(a.shape(), e.a, e.rows) <= 1;
  return told ? yes() : no("its rows cannot be joined: extents are unknown", a.name());
}

Value& matrix_product(Build& build, const Equation& e, Value& first, Value& second) {
  const Shape a_shape = first.shape(), b_shape = second.shape();
  Value* a = &ordered(build, first, e.a, e.batch + e.rows + e.summed);
  Value& b = ordered(build, second, e.b, e.batch + e.summed + e.columns);
  const Ints batch = extents_of(b_shape, e.b, e.batch);
  if (joins_rows(e)) a = &reshaped(build, *a, {batch, {-1}, extents_of(b_shape, e.b, e.summed)});
  Value* y = &build.op("MatMul", {a, &b});
  if (joins_rows(e))
    y = &reshaped(build, *y, {batch, extents_of(a_shape, e.a, e.rows), extents_of(b_shape, e.b, e.columns)});
  return ordered(build, *y, e.batch + e.rows + e.columns, e.y);
}

}  // namespace modelflow::passes
