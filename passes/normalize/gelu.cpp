#include "passes/normalize/activations.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

constexpr double kSqrtHalf = 0.70710678, kSqrt2 = 1.41421356, kSqrt2OverPi = 0.79788456;

/// Half of x * gate, in every grouping that exporters write.
std::vector<Pattern> half_of_product(const Pattern& x, const Pattern& gate) {
  return {
      (x * gate) * 0.5, x * (gate * 0.5), (x * 0.5) * gate,  // PyTorch's two exporters, Hugging Face
      (x * gate) / 2,   x * (gate / 2),   (x / 2) * gate,    // hand-written models
  };
}

std::vector<Pattern> gelu_erf() {
  const Pattern x = any("x");
  std::vector<Pattern> spellings;
  for (const Pattern& scaled : {x / kSqrt2, x * kSqrtHalf})  // PyTorch, tf2onnx
    for (Pattern& spelling : half_of_product(x, op("Erf", {scaled}) + 1)) spellings.push_back(std::move(spelling));
  return spellings;
}

std::vector<Pattern> gelu_tanh() {
  const Pattern x = any("x");
  const std::vector<Pattern> inner = {
      (x + pow(x, 3) * 0.044715) * kSqrt2OverPi,        // torch.onnx.export(dynamo), NewGELU
      (x + (x * (x * x)) * 0.044715) * kSqrt2OverPi,    // TorchScript exporter
      (x + ((x * 0.044715) * x) * x) * kSqrt2OverPi,    //
      (x * (((x * x) * 0.044715) + 1)) * kSqrt2OverPi,  //
      (x * kSqrt2OverPi) * (((x * 0.044715) * x) + 1),  // FastGELU of Hugging Face
      (x * kSqrt2OverPi) * (((x * x) * 0.044715) + 1),  //
  };
  std::vector<Pattern> spellings;
  for (const Pattern& scaled : inner)
    for (Pattern& spelling : half_of_product(x, op("Tanh", {scaled}) + 1)) spellings.push_back(std::move(spelling));
  return spellings;
}

}  // namespace

std::vector<Rule> gelu_rules() {
  std::vector<Rule> rules;
  add_spellings(rules, "gelu-from-erf", "x * (1 + Erf(x / sqrt(2))) / 2 -> Gelu", gelu_erf(),
                [](const Match&) { return ActivationNode{"Gelu"}; });
  add_spellings(rules, "gelu-from-tanh", "x * (1 + Tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) / 2 -> Gelu (tanh)",
                gelu_tanh(), [](const Match&) { return ActivationNode{"GeluTanh"}; });
  return rules;
}

}  // namespace modelflow::passes
