#include "passes/normalize/activations.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

constexpr double kSqrtHalf = 0.70710678, kSqrt2OverPi = 0.79788456, kCubic = 0.044715;

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
  add_spellings(rules, "gelu-from-tanh", "x * (1 + Tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) / 2 -> Gelu (tanh)",
                by_tanh, [](const Match&) { return ActivationNode{"GeluTanh"}; });
  return rules;
}

}  // namespace modelflow::passes
