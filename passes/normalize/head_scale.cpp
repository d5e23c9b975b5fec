// A factor of each head on the scores of an attention (Swin v2, cosine attention): the queries take it.
#include "passes/graph/facts.h"
#include "passes/graph/folded.h"
#include "passes/normalize/linear.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// One number for each matrix, and the left operand has no more elements than the result.
Verdict factor_of_matrices(const Match& m) {
  const Value &x = m.value("x"), &y = m.value("y");
  const Tensor& c = m.constant("c");
  const std::size_t rank = rank_of(&x).value_or(0);
  if (x.constant() || y.constant()) return no("one operand of the product is constant");
  if (c.elements() == 1 || c.rank() < 3 || c.rank() > rank || rank != rank_of(&y).value_or(0))
    return no("the factor is none of each matrix", m.value("c").name());
  if (c.dims().back() != 1 || c.dims()[c.rank() - 2] != 1) return no("the factor varies inside", m.value("c").name());
  if (!ordinary(c)) return no("the factor is too large or too small to stand in front", m.value("c").name());
  const std::optional<std::int64_t> depth = x.shape().back().number(), columns = y.shape().back().number();
  return depth && columns && *depth > *columns ? no("its left operand is larger than the product") : yes();
}

}  // namespace

std::vector<Rule> head_scale_rules() {
  return {{.name = "scale-before-scores",
           .doc = "MatMul(x, y) * c with a number of each head -> MatMul(x * c, y)",
           .from = op("MatMul", {any("x"), any("y")}) * constant("c"),
           .when = {factor_of_matrices},
           .into = [](const Match& m, Build& build) -> std::vector<Value*> {
             Value& x = build.op("Mul", {&m.value("x"), &m.value("c")});
             return {&build.op("MatMul", {&x, &m.value("y")})};
           }}};
}

}  // namespace modelflow::passes
