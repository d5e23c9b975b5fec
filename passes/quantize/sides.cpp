// The DequantizeLinear in front of an op and the QuantizeLinear behind it, as scale and zero point.
#include "passes/quantize/sides.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/imported_weights.h"
#include "passes/quantize/channels.h"

namespace modelflow::passes {
namespace {

/// How much of a step of y a bias in steps of x_scale * w_scale may be off by. Biases that arrived in float32 are off
/// by a few thousandths; one in 32 bits with other scales may be off by much more, and moves results by a whole step.
constexpr double kMostOff = 1.0 / 64;

/// Whether no element of the bias is off by more.
bool close_to(const Tensor& steps, const Tensor& bias, float x_scale, const Tensor& w_scales, float y_scale) {
  const auto q = steps.as<std::int32_t>();
  const auto b = bias.as<float>(), w = w_scales.as<float>();
  for (std::size_t i = 0; i < b.size(); ++i)
    if (std::abs(q[i] * (static_cast<double>(x_scale) * w[i]) - b[i]) > kMostOff * y_scale) return false;
  return true;
}

/// Whether every sum of products stays within 32 bits behind its bias, whatever the image is.
bool fits(const Tensor& steps, const Tensor& weights, std::size_t axis) {
  const Channels channel(weights.dims(), axis);
  const auto bias = steps.as<std::int32_t>();
  const auto w = weights.as<std::int8_t>();
  if (static_cast<std::int64_t>(bias.size()) != weights.dims()[axis]) return false;
  std::vector<std::int64_t> most(bias.size());
  for (std::size_t i = 0; i < bias.size(); ++i) most[i] = std::abs(std::int64_t{bias[i]});
  for (std::size_t i = 0; i < w.size(); ++i) most[channel(i)] += std::int64_t{255} * std::abs(int{w[i]});
  return std::ranges::all_of(most, [](std::int64_t sum) { return sum <= INT32_MAX; });
}

}  // namespace

std::optional<Side> side(Value* value, const Node& pair) {
  const Tensor* scale = pair.input(1) ? pair.input(1)->constant() : nullptr;
  const Tensor* zero = pair.input(2) ? pair.input(2)->constant() : nullptr;
  if (!scale || !zero || scale->elements() != 1 || zero->elements() != 1) return {};
  if (scale->dtype() != DType::f32 || zero->dtype() != DType::u8) return {};
  const Quantization q{scale->as<float>()[0], zero->as<std::uint8_t>()[0]};
  if (!std::isnormal(q.scale) || q.scale < 0) return {};  // such a pair means something, but nobody can divide by it
  return Side{value, pair.input(1), pair.input(2), q};
}

std::optional<Side> read_side(const Value* value) {
  const Node* node = value ? value->producer() : nullptr;
  if (!node || !node->is("DequantizeLinear")) return {};
  return side(node->input(0), *node);
}

std::optional<Side> write_side(const Value* value) {
  const Node* node = only_reader(*value);
  if (!node || !node->is("QuantizeLinear") || node->input(0) != value) return {};
  return side(node->output(), *node);
}

void set(Attrs& attrs, const std::string& name, const Quantization& q) {
  attrs.set(name + "_scale", Attr(q.scale)).set(name + "_zero_point", Attr(std::int64_t{q.zero_point}));
}

bool stays_float(const Node& node, const Context& context) {
  return context.plan && !context.plan->allows(node.name, Precision::i8);
}

std::optional<QuantizedWeights> weights_of(Value& weights, const Context& context, std::size_t axis,
                                           std::span<const float> least) {
  // A convolution takes 0 for the zero point of its weights.
  if (auto imported = imported_weights(weights, axis)) return imported->zero_points ? std::nullopt : imported;
  if (!context.plan) return {};
  return quantize_weights(*weights.constant(), axis,
                          {.least_scales = least, .bounded_pairs = adds_pairs_in_16_bits(context.target)});
}

std::optional<std::vector<Value*>> conv_inputs(Graph& graph, const Side& x, Value& weights, std::size_t axis,
                                               const Tensor* bias, float y_scale, const Context& context) {
  const std::vector<float> least = bias ? least_scales(bias->as<float>(), x.q.scale) : std::vector<float>();
  const auto w = weights_of(weights, context, axis, least);
  if (!w) return {};
  const Tensor zeros = Tensor::make(DType::f32, w->scales.dims(), [](std::byte*) {});
  const Tensor steps = quantize_bias(bias ? *bias : zeros, x.q.scale, w->scales);
  if (!fits(steps, w->values, axis)) return {};
  if (!context.plan && bias && !close_to(steps, *bias, x.q.scale, w->scales, y_scale)) return {};
  const std::string stem = weights.name();
  return std::vector<Value*>{x.value, &graph.add_constant(w->values, stem + "_quantized"),
                             &graph.add_constant(w->scales, stem + "_scale"),
                             &graph.add_constant(steps, stem + "_bias")};
}

}  // namespace modelflow::passes
