#include "passes/normalize/linear.h"

#include "modelflow/modelflow.h"
#include "passes/extents.h"
#include "passes/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {

using namespace pattern;

Verdict plain_gemm(const Match& m) {
  const Attrs& attrs = m.node("product").attrs;
  if (attrs.integer("transA") != 0) return no("the left operand is transposed");
  if (attrs.number("alpha", 1) != 1) return no("alpha is not 1");
  return m["c"] && attrs.number("beta", 1) != 1 ? no("beta is not 1") : yes();
}

Verdict bias_is_vector(const Match& m) {
  for (const char* name : {"b", "c"})
    if (const Value* bias = m[name]; bias && rank_of(bias).value_or(9) > 1)
      return no("the bias is no vector", bias->name());
  return yes();
}

namespace {

/// The reshapes only flatten the leading dims of x and bring them back: y is x with another last dim.
Verdict leading_dims_return(const Match& m) {
  const Value &x = m.value("x"), &flat = *m.node("product").input(0), &y = *m.root().output();
  for (const Value* v : {&x, &flat, &y})
    if (!v->type.is_tensor() || !v->shape().has_rank()) return no("its rank is unknown", v->name());
  const std::size_t rank = x.shape().rank();
  if (rank < 2 || y.shape().rank() != rank || flat.shape().rank() != 2) return no("the rank changes", y.name());
  if (!(x.shape().back() == flat.shape().back())) return no("the last dim is reshaped too", x.name());
  const Shape& w = m.value("w").constant() ? Shape::of(m.constant("w").dims()) : m.value("w").shape();
  const bool transposed = m.node("product").attrs.integer("transB") != 0;
  if (!(y.shape().back() == w[transposed ? 0 : 1])) return no("the last dim is reshaped too", y.name());
  std::size_t open = 0;  // one dim that is not proven equal follows from the number of elements
  for (std::size_t i = 0; i + 1 < rank; ++i) open += x.shape()[i] == y.shape()[i] ? 0 : 1;
  return open <= 1 ? yes() : no("the leading dims may change", y.name());
}

std::vector<Value*> on_all_dims(const Match& m, Build& build) {
  Value* w = &m.value("w");
  if (m.node("product").attrs.integer("transB") != 0) w = &build.op("Transpose", {w}, {{"perm", Ints{1, 0}}});
  Value* y = &build.op("MatMul", {&m.value("x"), w});
  if (Value* c = m["c"]) y = &build.op("Add", {y, c});
  return {y};
}

/// C that is computed is a sum like any other, a residual perhaps. Gemm takes no C from opset 11 on.
Verdict computed_c(const Match& m) {
  const Value& c = m.value("c");
  if (c.constant()) return no("C is constant: a bias", c.name());
  return m.node("product").attrs.number("beta", 1) == 1 ? yes() : no("beta is not 1");
}

std::vector<Value*> gemm_and_sum(const Match& m, Build& build) {
  Attrs attrs = m.node("product").attrs;
  attrs.erase("beta");
  if (build.opset() < 11) return {};
  return {&build.op("Add", {&build.op("Gemm", {m["a"], m["b"]}, std::move(attrs)), m["c"]})};
}

}  // namespace

Pass normalize_linear() {
  const Pattern x = any("x"), w = constant("w");
  const Pattern flat = open(op("Reshape", {x}));
  const auto restored = [](Pattern y) { return open(op("Reshape", {std::move(y)})); };
  const Pattern gemm = op("Gemm", {flat, w, optional(any("c"))}, "product");
  const Pattern matmul = op("MatMul", {flat, w}, "product");
  std::vector<Rule> rules = {
      {.name = "gemm-between-reshapes",
       .doc = "Reshape(Gemm(Reshape(x), w, b)) -> MatMul(x, w) + b",
       .from = restored(gemm),
       .when = {plain_gemm, bias_is_vector, leading_dims_return},
       .into = on_all_dims},
      {.name = "matmul-between-reshapes",
       .doc = "Reshape(MatMul(Reshape(x), w)) -> MatMul(x, w)",
       .from = restored(matmul),
       .when = {leading_dims_return},
       .into = on_all_dims},
      {.name = "biased-matmul-between-reshapes",
       .doc = "Reshape(MatMul(Reshape(x), w) + b) -> MatMul(x, w) + b",
       .from = restored(matmul + constant("c")),
       .when = {bias_is_vector, leading_dims_return},
       .into = on_all_dims},
      {.name = "gemm-with-computed-sum",
       .doc = "Gemm(a, b, c) with a computed c -> Gemm(a, b) + c",
       .from = op("Gemm", {any("a"), any("b"), any("c")}, "product"),
       .when = {computed_c},
       .into = gemm_and_sum},
  };
  for (Rule& rule : turned_linear_rules()) rules.push_back(std::move(rule));
  return rewrite("normalize-linear", "Writes linear layers without the reshapes and transposes around them.",
                 std::move(rules));
}

}  // namespace modelflow::passes
