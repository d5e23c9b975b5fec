// Linear layers between or in front of Transposes: they mind neither the order of rows nor where a sum is taken.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/normalize/linear.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// Rows that are transposed before a linear layer and back again behind it: the layer does not mind their order.
Verdict rows_return(const Match& m) {
  const Ints perm = m.root().attrs.ints("perm");
  if (perm.size() < 2 || perm.back() + 1 != static_cast<std::int64_t>(perm.size())) return no("moves the last axis");
  const Value& x = m.value("x");
  if (!x.type.is_tensor() || !x.shape().has_rank() || x.shape().rank() == 0)
    return no("its rank is unknown, or it has no axes", x.name());
  bool transposed = false;
  const Value* value = &x;
  for (const Node* node = value->producer(); node && only_reader(*value); node = value->producer()) {
    transposed = transposed || node->is("Transpose");
    if (transposed || !(node->is("Reshape") || node->is("Squeeze") || node->is("Unsqueeze"))) break;
    value = node->input(0);
  }
  return transposed ? yes() : no("its input is not transposed", x.name());
}

/// Several matrices, one for each of the rows' axes, do mind which is which.
Verdict one_matrix(const Match& m) {
  return m.constant("w").rank() == 2 ? yes() : no("the weights are more than one matrix", m.value("w").name());
}

/// Between layer and Transpose there is no Reshape, or one that leaves the last axis alone.
Verdict last_axis_stays(const Match& m) {
  if (!m["target"]) return yes();
  const std::optional<Ints> target = const_ints(m["target"]);
  const Value& y = *m.node("reshape").output();
  if (!target || target->empty() || !y.shape().has_rank()) return no("the target is not constant");
  const Shape w = Shape::of(m.constant("w").dims());
  const bool transposed = m.node("product").attrs.integer("transB") != 0;
  return y.shape().back() == w[transposed ? 0 : 1] ? yes() : no("the last axis is reshaped too", y.name());
}

std::vector<Value*> rows_first(const Match& m, Build& build) {
  Value *w = &m.value("w"), *x = &m.value("x");
  if (m["target"]) {
    Ints target = *const_ints(m["target"]);
    if (!x->shape().back().known()) return build.refuse(no("its width is unknown", x->name()));
    target.back() = x->shape().back().value();
    x = &build.op("Reshape", {x, &build.constant(tensor_of(target), "shape")}, m.node("reshape").attrs);
  }
  x = &build.op("Transpose", {x}, m.root().attrs);
  if (m.node("product").attrs.integer("transB") != 0) w = &build.op("Transpose", {w}, {{"perm", Ints{1, 0}}});
  Value* y = &build.op("MatMul", {x, w});
  for (const char* bias : {"b", "c"})
    if (m[bias]) y = &build.op("Add", {y, m[bias]});
  return {y};
}

/// Whether one of two operands of the same rank is known to be repeated along an axis of the other.
bool repeated(const Value& a, const Value& b) {
  if (rank_of(&a) != rank_of(&b)) return false;
  for (std::size_t i = 0; i < a.shape().rank(); ++i)
    if ((a.shape()[i] == Dim(1)) != (b.shape()[i] == Dim(1))) return true;
  return false;
}

/// An image whose channels a linear layer had last and a Transpose brings to the front, where convolutions would take
/// them in either order; the other operand can be turned the same way, and the layer would take the sum.
Verdict image_turns(const Match& m) {
  const Ints perm = m.node("transpose").attrs.ints("perm");
  const std::size_t rank = perm.size();
  Ints to_first = {0, static_cast<std::int64_t>(rank) - 1};
  for (std::size_t i = 1; i + 1 < rank; ++i) to_first.push_back(static_cast<std::int64_t>(i));
  if (rank < 4 || perm != to_first) return no("the Transpose does not bring the channels of an image to the front");
  const Value& other = m.value("other");
  if (other.constant()) return rank_of(&other).value_or(99) <= rank ? yes() : no("it raises the rank", other.name());
  if (rank_of(&other) != rank) return no("its rank is another one", other.name());
  return repeated(other, *m.node("transpose").output()) ? no("one of the two is repeated", other.name()) : yes();
}

/// The other operand with its axes in this order; a constant gets the axes that it lacks.
Value& turned(Value& value, const Ints& perm, Build& build) {
  if (!value.constant()) return build.op("Transpose", {&value}, {{"perm", perm}});
  const Tensor& constant = *value.constant();
  Dims dims(perm.size() - constant.rank(), 1), moved;
  dims.insert(dims.end(), constant.dims().begin(), constant.dims().end());
  for (const std::int64_t axis : perm) moved.push_back(dims[static_cast<std::size_t>(axis)]);
  // One number per channel lies in the same order along any axis: a constant at once, for the rules that ask for one.
  if (std::count(dims.begin(), dims.end(), 1) + 1 >= static_cast<std::ptrdiff_t>(dims.size()))
    return build.constant(constant.reshaped(moved), value.name());
  return build.op("Transpose", {&build.constant(constant.reshaped(dims), value.name())}, {{"perm", perm}});
}

/// What comes behind the Transpose of a linear layer comes in front of it: there the layer takes it.
std::vector<Value*> turned_back(const Match& m, Build& build) {
  const Ints perm = m.node("transpose").attrs.ints("perm");
  Ints back(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) back[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  Value& other = turned(m.value("other"), back, build);
  Value& y = build.op(m.root().op(), {m.node("transpose").input(0), &other});
  return {&build.op("Transpose", {&y}, {{"perm", perm}})};
}

}  // namespace

std::vector<Rule> turned_linear_rules() {
  const Pattern x = any("x"), w = constant("w");
  const Pattern gemm = op("Gemm", {x, w, optional(any("c"))}, "product");
  const Pattern matmul = op("MatMul", {x, w}, "product");
  const Pattern biased = either({gemm, matmul + constant("b"), matmul});
  const Pattern reshaped = op("Reshape", {biased, constant("target")}, "reshape");
  const Pattern layer = either({matmul + constant("b"), matmul});
  const auto behind = [](Pattern y) { return op("Transpose", {std::move(y)}, "transpose"); };
  return {{.name = "linear-between-transposes",
           .doc = "Transpose(Reshape(x' W + b)) of rows that x' = Transpose(x) turned -> x W + b",
           .from = op("Transpose", {either({reshaped, biased})}),
           .when = {one_matrix, plain_gemm, bias_is_vector, last_axis_stays, rows_return},
           .into = rows_first},
          {.name = "sum-behind-transpose",
           .doc = "Transpose(x W + b) + y, scaled or not -> Transpose(x W + b + y') where y' = y turned back",
           .from = behind(either({layer * constant("scale"), layer})) + any("other"),
           .when = {image_turns},
           .into = turned_back},
          {.name = "scale-behind-transpose",
           .doc = "Transpose(x W + b) * c -> Transpose((x W + b) * c') where c' = c turned back",
           .from = behind(layer) * constant("other"),
           .when = {image_turns},
           .into = turned_back}};
}

}  // namespace modelflow::passes
