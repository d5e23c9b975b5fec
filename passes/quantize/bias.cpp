// Rounding takes something from the mean of every output channel, always the same; the bias gives it back for nothing.
#include <algorithm>
#include <cmath>

#include "passes/graph/edits.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

constexpr double kMostSteps = 0x1p30;  // as much room left for the products

Tensor corrected_steps(const Tensor& bias, const Tensor& weight_scales, float input_scale,
                       const std::vector<float>& shift) {
  std::vector<std::int32_t> steps;
  for (std::size_t m = 0; m < shift.size(); ++m) {
    const double unit = static_cast<double>(input_scale) * weight_scales.as<float>()[m];
    const double moved = bias.as<std::int32_t>()[m] + std::nearbyint(shift[m] / unit);
    const bool fits = std::abs(moved) <= kMostSteps;
    steps.push_back(fits ? static_cast<std::int32_t>(moved) : bias.as<std::int32_t>()[m]);
  }
  return Tensor::of<std::int32_t>(bias.dims(), std::span<const std::int32_t>(steps));
}

Tensor corrected(const Tensor& bias, const std::vector<float>& shift) {
  std::vector<float> sum(shift);
  for (std::size_t n = 0; n < sum.size(); ++n) sum[n] += bias.as<float>()[n];
  return Tensor::of<float>(bias.dims(), std::span<const float>(sum));
}

bool correct(Node& node, const std::vector<float>& shift) {
  const bool conv = !computes(node, Family::product);
  const std::optional<std::size_t> place = place_of(node, "bias");
  const Tensor* bias = place ? node.input(*place)->constant() : nullptr;
  if (!bias || bias->dtype() != (conv ? DType::i32 : DType::f32)) return false;
  if (bias->elements() != static_cast<std::int64_t>(shift.size())) return false;
  if (!std::all_of(shift.begin(), shift.end(), [](float x) { return std::isfinite(x); })) return false;
  set_constant(node, *place,
               conv ? corrected_steps(*bias, *weight_scales_in(node)->constant(), node.attrs.number("x_scale"), shift)
                    : corrected(*bias, shift));
  return true;
}

int run(Graph& graph, Context& context) {
  if (!context.plan) return 0;
  int changes = 0;
  for (const auto& node : graph.nodes()) {
    const bool product = computes(*node, Family::product, Form::i8) && node->attrs.integer("has_zero_point") == 0;
    const bool conv = computes(*node, Family::convolution, Form::i8) ||
                      computes(*node, Family::transposed_convolution, Form::i8) ||
                      computes(*node, Family::transposed_convolution, Form::i8_to_f32);
    if (!product && !conv) continue;
    const auto shift = context.plan->bias_shifts.find(node->name);
    if (shift != context.plan->bias_shifts.end()) changes += correct(*node, shift->second);
  }
  if (changes) {
    context.hit("correct-bias", changes);
    graph.prune();
  }
  return changes;
}

}  // namespace

Pass correct_bias() {
  return {.name = "correct-bias",
          .doc = "What rounding takes from the mean of each output channel goes into the bias, as calibration saw it",
          .run = run};
}

}  // namespace modelflow::passes
