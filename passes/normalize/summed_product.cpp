// ReduceSum(a b) where a and b are repeated along axes of each other -> MatMul: state spaces in chunks (Mamba-2,
// arXiv 2405.21060) are written so, which makes a tensor of all products before it is summed.
#include <algorithm>

#include "passes/graph/facts.h"
#include "passes/normalize/equation.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// The sum as an equation over the axes that are more than 1 long.
struct Sum {
  Equation e;
  Ints a_units, b_units;  ///< axes of the operands that are 1 long: not in the equation
  Ints y_units;           ///< and of the result
};

bool is_unit(const Dim& dim) { return dim.number() == 1; }

/// The letter of axis i where an operand of this shape has it; counted from the last axis, as operands broadcast.
class Letters {
 public:
  Letters(const Shape& shape, std::size_t rank) : shape_(shape), missing_(rank - shape.rank()) {}

  bool has(std::size_t i) const { return i >= missing_ && !is_unit(shape_[i - missing_]); }
  const Dim& extent(std::size_t i) const { return shape_[i - missing_]; }
  std::string text(std::size_t rank) const {
    std::string all;
    for (std::size_t i = 0; i < rank; ++i)
      if (has(i)) all += static_cast<char>('a' + i);
    return all;
  }
  Ints units() const {
    Ints axes;
    for (std::size_t i = 0; i < shape_.rank(); ++i)
      if (is_unit(shape_[i])) axes.push_back(static_cast<std::int64_t>(i));
    return axes;
  }

 private:
  const Shape& shape_;
  std::size_t missing_;
};

std::optional<Sum> sum_of(const Match& m) {
  const Node& reduce = m.root();
  const Value &a = m.value("a"), &b = m.value("b");
  const std::size_t rank = std::max(a.shape().rank(), b.shape().rank());
  const std::optional<Ints> given = setting(reduce, "axes", 1);
  const std::optional<Ints> axes = given ? positive(*given, static_cast<std::int64_t>(rank)) : std::nullopt;
  if (!axes || axes->empty() || rank > 26) return {};
  const Letters in_a(a.shape(), rank), in_b(b.shape(), rank);
  Sum sum{{in_a.text(rank), in_b.text(rank), {}, {}, {}, {}, {}}, in_a.units(), in_b.units(), {}};
  std::int64_t place = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (in_a.has(i) && in_b.has(i) && !(in_a.extent(i) == in_b.extent(i))) return {};
    const bool summed = std::ranges::find(*axes, static_cast<std::int64_t>(i)) != axes->end();
    if (summed && reduce.attrs.integer("keepdims", 1) == 0) continue;
    if (!summed && (in_a.has(i) || in_b.has(i)))
      sum.e.y += static_cast<char>('a' + i);
    else
      sum.y_units.push_back(place);
    ++place;
  }
  return sum;
}

Value& without(Build& build, Value& value, const Ints& axes) {
  return axes.empty() ? value : build.op("Squeeze", {&value, &build.constant(tensor_of(axes), "axes")});
}

Verdict is_contraction(const Match& m) {
  for (const Value* value : {&m.value("a"), &m.value("b")}) {
    if (!value->type.is_tensor() || !value->shape().has_rank()) return no("its rank is unknown", value->name());
    if (value->dtype() != DType::f32 && value->dtype() != DType::f64) return no("is no float32", value->name());
    if (std::ranges::any_of(value->shape().dims(), [](const Dim& dim) { return dim.number() == 0; }))
      return no("it has no elements", value->name());
  }
  std::optional<Sum> sum = sum_of(m);
  if (!sum) return no("its axes may be 1 long at run time");
  if (Verdict verdict = classify(sum->e); !verdict) return verdict;
  const bool single = sum->e.rows.size() == 1 && sum->e.columns.size() == 1;
  return single ? yes() : no("several axes of one operand alone: a product would need reshapes");
}

std::vector<Value*> contraction(const Match& m, Build& build) {
  if (build.opset() < 13) return {};
  Sum sum = *sum_of(m);
  if (!classify(sum.e)) return {};
  Value &a = without(build, m.value("a"), sum.a_units), &b = without(build, m.value("b"), sum.b_units);
  Value& y = matrix_product(build, sum.e, a, b);
  if (sum.y_units.empty()) return {&y};
  return {&build.op("Unsqueeze", {&y, &build.constant(tensor_of(sum.y_units), "axes")})};
}

}  // namespace

Rule summed_product() {
  return {.name = "summed-product",
          .doc = "ReduceSum(a[.., m, 1, k] * b[.., 1, n, k]) -> MatMul between Transposes (Mamba-2)",
          .from = op("ReduceSum", {any("a") * any("b"), optional(any("axes"))}),
          .when = {is_contraction},
          .into = contraction};
}

}  // namespace modelflow::passes
