// Softmax and LogSoftmax spelled out with exponentials and sums -> the op, which does it in one pass.
#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// The one axis that every reduction of the match works on; nullopt when there is no such.
std::optional<std::int64_t> reduced_axis(const Match& m) {
  std::optional<std::int64_t> common;
  const auto rank = static_cast<std::int64_t>(rank_of(&m.value("x")).value_or(0));
  for (const Node* node : m.nodes()) {
    if (!node->op().starts_with("Reduce")) continue;
    std::optional<Ints> axes = setting(*node, "axes", 1);
    if (axes) axes = positive(*axes, rank);
    if (!axes || axes->size() != 1 || (common && *common != axes->front())) return {};
    common = axes->front();
  }
  return common;
}

Verdict one_axis(const Match& m) {
  const Value& x = m.value("x");
  if (!is_float(x.dtype())) return no("it is no float", x.name());
  return reduced_axis(m) ? yes() : no("not one and the same known axis is reduced", x.name());
}

/// Before opset 13 both ops work on everything behind their axis at once.
std::vector<Value*> replace_by(const char* type, const Match& m, Build& build) {
  if (build.opset() < 13) return build.refuse(no(std::string(type) + " works on one axis from opset 13 on"));
  return {&build.op(type, {&m.value("x")}, {{"axis", *reduced_axis(m)}})};
}

Pattern reduce(const char* type, Pattern x) {
  return where(open(op(type, {std::move(x)})), [](const Node& node) {
    return node.attrs.integer("keepdims", 1) != 0 ? yes() : no("the reduced axis does not stay");
  });
}

}  // namespace

// Two are not among them. Log(Softmax(x)): where a weight is too small for a float it gives -inf, and LogSoftmax a
// number. x - LogSumExp(x): the logarithm is lost beside a large maximum, and beside inf it gives -inf, not NaN.
Pass normalize_softmax() {
  const Pattern x = any("x");
  const Pattern below = x - reduce("ReduceMax", x);
  const Pattern e = op("Exp", {below});
  const auto log = [](Pattern p) { return op("Log", {std::move(p)}); };
  return rewrite("normalize-softmax", "Finds Softmax and LogSoftmax that exporters wrote as several nodes.",
                 {{.name = "log-softmax-from-sum",
                   .doc = "(x - max) - Log(sum(Exp(x - max))), the same with LogSumExp(x - max) -> LogSoftmax",
                   .from = either({below - log(reduce("ReduceSum", e)), below - reduce("ReduceLogSumExp", below)}),
                   .when = {one_axis},
                   .into = [](const Match& m, Build& build) { return replace_by("LogSoftmax", m, build); }},
                  {.name = "softmax-from-sum",
                   .doc = "Exp(x - max) / sum(Exp(x - max)) -> Softmax",
                   .from = either({e / reduce("ReduceSum", e), e * op("Reciprocal", {reduce("ReduceSum", e)})}),
                   .when = {one_axis},
                   .into = [](const Match& m, Build& build) { return replace_by("Softmax", m, build); }}});
}

}  // namespace modelflow::passes
