// Gelu in the groupings and with the constants that exporters write.
#include <numbers>

#include "modelflow/modelflow.h"
#include "passes/normalize/activations.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

constexpr double kSqrtHalf = std::numbers::sqrt2 / 2, kCubic = 0.044715;
constexpr double kSqrt2OverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
/// The one rounded constant that is in use: Megatron-LM and what copied its erf_gelu. All others write as many digits
/// as float32 has.
constexpr double kRoundedSqrt2 = 1.41421;

/// Gelu(s * x) / s is x * (1 + Erf(s * x / sqrt(2))) / 2: the constant stays what it was, linear layers take the s.
std::vector<Value*> gelu_of_rounded(const Match& m, Build& build) {
  constexpr double s = std::numbers::sqrt2 / kRoundedSqrt2;
  const auto times = [&](Value& value, double factor) -> Value& {
    return build.op("Mul", {&value, &build.constant(Tensor::scalar(static_cast<float>(factor)), "factor")});
  };
  return {&times(make_activation(build, times(m.value("x"), s), {"Gelu"}), 1 / s)};
}

}  // namespace

// The halving stands before, between or behind: product() takes all groupings that PyTorch's two exporters, Hugging
// Face and TensorFlow write.
std::vector<Rule> gelu_rules() {
  const Pattern x = any("x");
  const Pattern erf = op("Erf", {x * kSqrtHalf});
  const auto tanh_of = [](Pattern inner) { return op("Tanh", {std::move(inner)}); };
  const std::vector<Pattern> cubes = {
      product({x + pow(x, 3) * kCubic}, kSqrt2OverPi),          // dynamo exporter, NewGELU
      product({x + product({x, x, x}, kCubic)}, kSqrt2OverPi),  // TorchScript exporter
      product({x, product({x, x}, kCubic) + 1}, kSqrt2OverPi),  // FastGELU of Hugging Face
      product({x, pow(x, 2) * kCubic + 1}, kSqrt2OverPi),
  };
  std::vector<Pattern> by_tanh;
  for (const Pattern& cube : cubes) by_tanh.push_back(product({x, tanh_of(cube) + 1}, 0.5));
  std::vector<Rule> rules;
  add_spellings(rules, "gelu-from-erf", "x * (1 + Erf(x / sqrt(2))) / 2 -> Gelu", {product({x, erf + 1}, 0.5)},
                [](const Match&) { return ActivationNode{"Gelu"}; });
  add_spellings(rules, "gelu-from-rounded-erf", "x * (1 + Erf(x / 1.41421)) / 2 -> Gelu(x * s) / s (Megatron-LM)",
                {product({x, op("Erf", {x * (1 / kRoundedSqrt2)}) + 1}, 0.5)},
                [](const Match&) { return ActivationNode{"Gelu"}; });
  rules.back().into = gelu_of_rounded;
  add_spellings(rules, "gelu-from-tanh", "x * (1 + Tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) / 2 -> Gelu (tanh)",
                by_tanh, [](const Match&) { return ActivationNode{"GeluTanh"}; });
  return rules;
}

}  // namespace modelflow::passes
