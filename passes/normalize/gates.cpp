// Hard sigmoid and hard swish, squared ReLU, Silu and their like, spelled out.
#include <cmath>
#include <limits>

#include "passes/graph/facts.h"
#include "passes/normalize/activations.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// NaN where the constant is no single number.
float number_of(const Match& m, std::string_view name) {
  return static_cast<float>(const_number(&m.value(name)).value_or(std::numeric_limits<double>::quiet_NaN()));
}

/// Slope 1 / a or a and shift b as attributes; infinity times 0 would be another number there.
Verdict finite_line(const Match& m) {
  for (const char* name : {"a", "b", "k"})
    if (m[name] && !std::isfinite(number_of(m, name))) return no("is not finite", m.value(name).name());
  return yes();
}

Verdict invertible(const Match& m) {
  return std::isfinite(1 / number_of(m, "a")) ? yes() : no("has no inverse", m.value("a").name());
}

ActivationNode hard_swish(const Match&) { return {"HardSwish", 1.0F / 6, 0.5F}; }
ActivationNode hard_sigmoid(const Match&) { return {"HardSigmoid", 1.0F / 6, 0.5F}; }

void add_hard_sigmoid(std::vector<Rule>& rules) {
  const Pattern x = any("x"), a = constant("a"), b = constant("b");
  add_spellings(rules, "hard-sigmoid-from-relu6", "Clip(x + 3, 0, 6) / 6 -> HardSigmoid", {clip(x + 3, 0, 6) / 6},
                hard_sigmoid);
  add_spellings(rules, "hard-sigmoid-from-clip", "Clip(x * a + b, 0, 1) -> HardSigmoid", {clip(x * a + b, 0, 1)},
                [](const Match& m) {
                  return ActivationNode{"HardSigmoid", number_of(m, "a"), number_of(m, "b")};
                },
                {finite_line});
  add_spellings(rules, "hard-sigmoid-from-clip", "Clip(x / a + b, 0, 1) -> HardSigmoid", {clip(x / a + b, 0, 1)},
                [](const Match& m) {
                  return ActivationNode{"HardSigmoid", 1 / number_of(m, "a"), number_of(m, "b")};
                },
                {finite_line, invertible});
}

void add_hard_swish(std::vector<Rule>& rules) {
  const Pattern x = any("x");
  add_spellings(rules, "hard-swish-from-relu6", "x * Clip(x + 3, 0, 6) / 6 -> HardSwish",  // paddle, TensorFlow
                {product({x, clip(x + 3, 0, 6)}, 1.0 / 6)}, hard_swish);
  add_spellings(rules, "hard-swish-from-hard-sigmoid", "x * HardSigmoid(x) -> HardSwish",
                {x * op("HardSigmoid", {x}, "gate")}, [](const Match& m) {
                  const Attrs& gate = m.node("gate").attrs;
                  return ActivationNode{"HardSwish", gate.number("alpha", 0.2F), gate.number("beta", 0.5F)};
                });
}

/// The sixth of HardSwish has gone into the next convolution (clean runs first): with a 6 behind it that may follow it.
Verdict sixth_is_gone(const Match& m) {
  for (const Use& use : m.root().output()->uses()) {
    if (use.node->is("Div") || use.node->is("Mul")) return no("a factor may follow", m.root().output()->name());
  }
  return yes();
}

void add_scaled_hard_swish(std::vector<Rule>& rules) {
  const Pattern x = any("x");
  add_spellings(rules, "hard-swish-times-6", "x * Clip(x + 3, 0, 6) -> HardSwish * 6", {x * clip(x + 3, 0, 6)},
                hard_swish, {sixth_is_gone});
  rules.back().into = [](const Match& m, Build& build) {
    Value& y = make_activation(build, m.value("x"), hard_swish(m));
    return std::vector<Value*>{&build.op("Mul", {&y, &build.constant(Tensor::scalar(6.0F), "six")})};
  };
}

/// log(1 + exp(x)) - x is less than half a last digit of x from 15 on.
Verdict softplus_is_identity(const Match& m) {
  return number_of(m, "k") >= 15 ? yes() : no("the threshold is below 15", m.value("k").name());
}

}  // namespace

std::vector<Rule> gate_rules() {
  const Pattern x = any("x"), k = constant("k");
  std::vector<Rule> rules;
  add_hard_swish(rules);  // before HardSigmoid, which is a part of it
  add_scaled_hard_swish(rules);
  add_hard_sigmoid(rules);
  const Pattern r = op("Relu", {x});
  add_spellings(rules, "squared-relu", "Relu(x)^2 -> SquaredRelu",  // MetaFormer, Primer, RWKV, Nemotron
                {pow(r, 2), r * r}, [](const Match&) { return ActivationNode{"SquaredRelu"}; });
  add_spellings(rules, "silu", "x * Sigmoid(x) -> SiLU", {x * op("Sigmoid", {x})},
                [](const Match&) { return ActivationNode{"SiLU"}; });
  add_spellings(rules, "quick-gelu", "x * Sigmoid(k * x) -> QuickGelu", {x * op("Sigmoid", {x * k})},
                [](const Match& m) {
                  return ActivationNode{"QuickGelu", number_of(m, "k")};
                },
                {finite_line});
  add_spellings(rules, "mish", "x * Tanh(Softplus(x)) -> Mish",
                {x * op("Tanh", {op("Softplus", {x})}), x * op("Tanh", {op("Log", {op("Exp", {x}) + 1})})},
                [](const Match&) { return ActivationNode{"Mish"}; });
  // torch.nn.functional.softplus: beyond its threshold, the function itself.
  add_spellings(rules, "softplus-with-threshold", "Where(x > k, x, Softplus(x)), k >= 15 -> Softplus",
                {op("Where", {op("Greater", {x, k}), x, op("Softplus", {x})})},
                [](const Match&) { return ActivationNode{"Softplus"}; }, {softplus_is_identity});
  return rules;
}

}  // namespace modelflow::passes
