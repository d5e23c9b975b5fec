// Activations on a fine grid of numbers, and far outside of it, beside the same in double: samples of a kernel's domain
// meet few of the intervals that approximations have.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "backends/ops/activation_body.h"
#include "tests/each_kernel.h"

namespace modelflow {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

struct Curve {
  const char* name;
  double (*at)(double);
  double between = 0x1p-126;  ///< the size of a number that it subtracts from
};
const Curve kCurves[] = {
    {"Sigmoid", logistic},
    {"SiLU", [](double x) { return x * logistic(x); }},
    {"QuickGelu", [](double x) { return x * logistic(1.702 * x); }},
    {"Gelu", [](double x) { return x * std::erfc(-x / std::numbers::sqrt2) / 2; }},
    {"GeluTanh",
     [](double x) { return x * logistic(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"Softplus", [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }},
    {"Elu", [](double x) { return x > 0 ? x : std::expm1(x); }, 1},
};

std::vector<float> grid() {
  std::vector<float> x;
  for (int i = -40000; i <= 40000; ++i) x.push_back(static_cast<float>(i) / 2048.0f);
  for (const float size : {1e-30f, 1e-12f, 1e-4f, 31.0f, 86.9f, 87.1f, 88.8f, 103.0f, 110.0f, 1e3f, 1e6f, 1e18f, 3e38f})
    x.insert(x.end(), {size, -size});
  return x;
}

/// Four last digits of x or of the result, whichever is larger: as much as the ops that they are made of lose.
TEST(Activations, AreExactToSomeLastDigitsEverywhere) {
  const std::vector<float> x = grid();
  for (const Curve& curve : kCurves) {
    domains::Operands made = call_of("Activation", ops::activation_sample(curve.name));
    made.call.attrs.set("alpha", Attr(std::string_view(curve.name) == "QuickGelu" ? 1.702f : 1.0f));
    made.feed("x", Tensor::of<float>({static_cast<std::int64_t>(x.size())}, x));
    with_results(made, [&](std::span<const float> y) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double right = curve.at(static_cast<double>(x[i]));
        const double size = std::max({std::abs(static_cast<double>(x[i])), std::abs(right), curve.between});
        ASSERT_LE(std::abs(static_cast<double>(y[i]) - right), size * 0x1p-21) << curve.name << " of " << x[i];
      }
    });
  }
}

}  // namespace
}  // namespace modelflow
