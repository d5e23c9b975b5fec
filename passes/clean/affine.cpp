// Scaling and shifting per channel, merged with one another and folded into linear layers.
#include <algorithm>

#include "passes/clean/clean.h"
#include "passes/graph/facts.h"
#include "passes/graph/linear_op.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

// The constant "c" of a Mul, Div, Add or Sub as y = x * scale + shift per channel.
struct Affine {
  std::vector<double> scale = {1}, shift = {0};
  bool shifts() const { return shift != std::vector<double>{0}; }
};

using Meaning = Affine (*)(std::vector<double> c);

Affine times(std::vector<double> c) { return {.scale = std::move(c)}; }
Affine over(std::vector<double> c) {
  for (double& v : c) v = 1 / v;
  return {.scale = std::move(c)};
}
Affine plus(std::vector<double> c) { return {.shift = std::move(c)}; }
Affine minus(std::vector<double> c) {
  for (double& v : c) v = -v;
  return {.shift = std::move(c)};
}
Affine subtracted(std::vector<double> c) { return {.scale = {-1}, .shift = std::move(c)}; }

Pattern linear(Pattern x) {
  return open(op_any({"Conv", "ConvTranspose", "Gemm", "MatMul"}, {std::move(x)}, "linear"));
}

Rule after(std::string name, std::string doc, Pattern from, Meaning meaning) {
  const auto numbers = [](const LinearOp& op, const Match& m) { return op.over_outputs(m.constant("c")); };
  const Condition fits = [numbers](const Match& m) -> Verdict {
    std::string why;
    const std::optional<LinearOp> op = LinearOp::of(m.node("linear"), &why);
    if (!op) return no(why);
    if (m["b"] && !op->over_outputs(m.constant("b"))) return no("the bias is not per channel", m["b"]->name());
    return numbers(*op, m) ? yes() : no("the constant is not one number per output channel", m["c"]->name());
  };
  const auto into = [=](const Match& m, Build& build) -> std::vector<Value*> {
    LinearOp op = *LinearOp::of(m.node("linear"));
    if (m["b"]) op.shift_outputs(*op.over_outputs(m.constant("b")));
    const Affine affine = meaning(*numbers(op, m));
    if (affine.scale != std::vector<double>{1}) op.scale_outputs(affine.scale);
    if (affine.shifts()) op.shift_outputs(affine.shift);
    return op.build(build, m["x"]);
  };
  return {std::move(name), std::move(doc), std::move(from), {fits}, into};
}

/// Scaling and shifting of what comes into the model: pixel normalisation. Elsewhere such nodes are mostly the end of
/// an activation or a normalisation (GELU halves, LayerNorm scales) that runtimes know only as a whole.
Verdict prepares_input(const Match& m) {
  const Value* value = m["x"];
  for (int steps = 0; value && steps < 16; ++steps) {
    if (value->is_graph_input() && !value->graph().parent()) return yes();
    const Node* node = value->producer();
    if (!node) break;
    const bool affine = node->is("Mul") || node->is("Div") || node->is("Add") || node->is("Sub");
    const bool moves = node->is("Cast") || node->is("Transpose") || node->is("Resize") || node->is("Reshape") ||
                       node->is("Unsqueeze") || node->is("Squeeze");
    if (affine && node->input(1)->constant())
      value = node->input(0);
    else if (affine && node->input(0)->constant())
      value = node->input(1);
    else if (moves)
      value = node->input(0);
    else
      break;
  }
  return no("it may be the end of an activation or normalisation", m["c"]->name());
}

Rule before(std::string name, std::string doc, Pattern from, Meaning meaning) {
  const Condition fits = [meaning](const Match& m) -> Verdict {
    std::string why;
    const std::optional<LinearOp> op = LinearOp::of(m.node("linear"), &why);
    if (!op) return no(why);
    const std::optional<std::vector<double>> c = op->over_inputs(m.constant("c"));
    if (!c) return no("the constant is not one number per input channel", m["c"]->name());
    if (!same_type(*m["x"], *m.node("linear").input(0)))
      return no("the constant may enlarge its input", m["x"]->name());
    if (meaning(*c).shifts() && !op->shift_safe()) return no("the shift would leak into the padded border");
    return prepares_input(m);
  };
  const auto into = [meaning](const Match& m, Build& build) -> std::vector<Value*> {
    LinearOp op = *LinearOp::of(m.node("linear"));
    const Affine affine = meaning(*op.over_inputs(m.constant("c")));
    if (affine.shifts()) op.shift_inputs(affine.shift);
    if (affine.scale != std::vector<double>{1}) op.scale_inputs(affine.scale);
    return op.build(build, m["x"]);
  };
  return {std::move(name), std::move(doc), std::move(from), {fits}, into};
}

/// The layer with the number in its bias, and the view of it: parts of a modulation (1 + scale) stand so in diffusion
/// transformers.
Rule behind_view(std::string name, std::string doc, bool negated) {
  const Pattern layer = open(op_any({"Conv", "ConvTranspose", "Gemm", "MatMul"}, {any("x")}, "linear"));
  const Pattern biased = open(op("MatMul", {any("x")}, "linear")) + constant("b");
  const Pattern viewed =
      open(op_any({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose"}, {either({biased, layer})}, "view"));
  const Condition fits = [](const Match& m) -> Verdict {
    std::string why;
    const std::optional<LinearOp> op = LinearOp::of(m.node("linear"), &why);
    if (!op) return no(why);
    if (m["b"] && !op->over_outputs(m.constant("b"))) return no("the bias is not per channel", m["b"]->name());
    const Value &c = m.value("c"), &y = *m.node("view").output();
    const bool raises = m.constant("c").rank() > rank_of(&y).value_or(0);
    if (raises || m.constant("c").elements() != 1) return no("it is not one number for all elements", c.name());
    return op->over_outputs(m.constant("c").reshaped({})) ? yes() : no("it is of another type", c.name());
  };
  const auto into = [negated](const Match& m, Build& build) -> std::vector<Value*> {
    LinearOp op = *LinearOp::of(m.node("linear"));
    if (m["b"]) op.shift_outputs(*op.over_outputs(m.constant("b")));
    const Affine affine = (negated ? minus : plus)(*op.over_outputs(m.constant("c").reshaped({})));
    op.shift_outputs(affine.shift);
    std::vector<Value*> inputs = m.node("view").inputs(), made = op.build(build, m["x"]);
    if (made.empty()) return made;
    inputs[0] = made[0];
    return {&build.op(m.node("view").op(), inputs, m.node("view").attrs)};
  };
  return {std::move(name), std::move(doc), negated ? viewed - constant("c") : viewed + constant("c"), {fits}, into};
}

// A bare MatMul followed by an Add is already its biased form: folding it would give the same two nodes.
Verdict takes_bias(const Match& m) {
  return m.node("linear").op() == "MatMul" ? no("MatMul has no bias input: the Add is its bias") : yes();
}

}  // namespace

Pass fold_affine() {
  const Pattern x = any("x"), c = constant("c");
  const Pattern biased = open(op("MatMul", {x}, "linear")) + constant("b");
  std::vector<Rule> rules = {
      after("mul-into-previous", "linear(x) * c -> linear with scaled weights", linear(x) * c, times),
      after("div-into-previous", "linear(x) / c -> linear with scaled weights", linear(x) / c, over),
      after("add-into-previous", "Conv | ConvTranspose | Gemm + c -> their bias", linear(x) + c, plus),
      after("sub-into-previous", "Conv | ConvTranspose | Gemm - c -> their bias", linear(x) - c, minus),
      after("negate-into-previous", "c - linear(x) -> linear with negated weights", c - linear(x), subtracted),
      after("mul-into-biased-matmul", "(MatMul + b) * c -> MatMul + b with scaled constants", biased * c, times),
      after("div-into-biased-matmul", "(MatMul + b) / c -> MatMul + b with scaled constants", biased / c, over),
      after("add-into-biased-matmul", "(MatMul + b) + c -> MatMul + (b + c)", biased + c, plus),
      after("sub-into-biased-matmul", "(MatMul + b) - c -> MatMul + (b - c)", biased - c, minus),
      behind_view("add-behind-view", "view of linear(x) + number -> view of linear with another bias", false),
      behind_view("sub-behind-view", "view of linear(x) - number -> view of linear with another bias", true),
      before("mul-into-next", "linear(x * c) -> linear with scaled weights", linear(x * c), times),
      before("div-into-next", "linear(x / c) -> linear with scaled weights", linear(x / c), over),
      before("add-into-next", "linear(x + c) -> linear with another bias (no padding)", linear(x + c), plus),
      before("sub-into-next", "linear(x - c) -> linear with another bias (no padding)", linear(x - c), minus),
  };
  for (Rule& rule : rules)
    if (rule.name == "add-into-previous" || rule.name == "sub-into-previous")
      rule.when.insert(rule.when.begin(), takes_bias);
  return rewrite("fold-affine", "Folds Mul, Div, Add and Sub by constants into the weights of a linear op beside them.",
                 std::move(rules));
}

}  // namespace modelflow::passes
