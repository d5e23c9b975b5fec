// Reads and checks calls of QConv, and estimates their cost.
#include "backends/cpu/qconv/problem.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "backends/call_attrs.h"
#include "backends/cpu/conv/padding.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/ops/work.h"

namespace modelflow::cpu {
namespace {

using ops::QConvAttrs;

[[noreturn]] void mismatch(const std::string& what) { throw Error(ErrorKind::invalid_input, "QConv: " + what); }

template <class T>
const T* tensor(const Invocation& call, std::size_t index, std::span<const std::int64_t> dims) {
  return typed_input<T>(call, "QConv", index, dims);
}

// A bound of what comes before the rounding, in steps of y. `sum`: of a sum, in units of the scale of x.
double largest_steps(const Call& call, const QConvAttrs& attrs, double sum) {
  const ActivationSpec a = activation_of(call);
  const auto size = [](float value) { return std::abs(static_cast<double>(value)); };
  const double added = attrs.conv.residual == ops::Residual::none ? 0 : 255 * size(attrs.residual.scale);
  const double in = std::max({sum * size(attrs.x.scale) + added, 1.0, size(a.beta)});
  const double out = in * std::max(1.0, size(a.alpha)) * size(a.scale) + size(a.shift) + added;
  return out / size(attrs.y.scale);
}

}  // namespace

QBounds bounds_of(const QEpilogue& e) {
  const auto step = [&](float value) {
    const float q = std::nearbyint(value / e.y.scale) + static_cast<float>(e.y.zero_point);
    return static_cast<std::uint8_t>(q > 0 ? std::min(q, 255.0f) : 0);
  };
  const ActivationSpec& a = e.activation;
  if (!e.bounded() || a.kind == Activation::none) return {};
  return a.kind == Activation::clip ? QBounds{step(a.alpha), step(a.beta)} : QBounds{step(0), 255};
}

QConvNode::QConvNode(const Call& call)
    : attrs(call), epilogue{activation_of(call), attrs.conv.residual, attrs.y, attrs.residual} {}

QConvOperands QConvNode::operands(Invocation& call) const {
  const ops::ConvAttrs& conv = attrs.conv;
  if (call.inputs() != attrs.inputs()) mismatch("got " + std::to_string(call.inputs()) + " inputs");
  QConvOperands o{};
  o.x_dims = call.input(0).dims;
  const std::size_t rank = conv.rank();
  const std::span<const std::int64_t> w = call.input(1).dims;
  if (o.x_dims.size() != rank + 2 || w.size() != rank + 2)
    mismatch("x is " + text(o.x_dims) + ", w " + text(w) + ", the kernel has " + std::to_string(rank) + " axes");
  Dims expected = {w[0], o.x_dims[conv.x_last ? rank + 1 : 1] / conv.group};
  expected.insert(expected.end(), conv.kernel.begin(), conv.kernel.end());
  if (w[0] % conv.group != 0 || o.x_dims[conv.x_last ? rank + 1 : 1] % conv.group != 0)
    mismatch("group " + std::to_string(conv.group) + " does not divide the channels");
  o.x = tensor<std::uint8_t>(call, 0, o.x_dims);
  o.w = tensor<std::int8_t>(call, 1, expected);
  const Dims filters = {w[0]};
  o.w_scale = tensor<float>(call, QConvAttrs::kScale, filters);
  o.bias = tensor<std::int32_t>(call, QConvAttrs::kBias, filters);
  o.y_dims = conv.output_dims(o.x_dims, w[0]);
  if (conv.residual != ops::Residual::none) o.added = tensor<std::uint8_t>(call, QConvAttrs::kResidual, o.y_dims);
  o.y = static_cast<std::uint8_t*>(call.output(0, o.y_dims));
  return o;
}

void expect_extents_of_31_bits(const ConvGeometry& g) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const bool small = g.height < kMost && g.rows < kMost && g.columns < kMost && g.width < kMost / g.channels;
  if (!small || g.batch >= kMost) throw Error(ErrorKind::limit, "QConv: the image is too large");
}

QScales::QScales(const Call& call, const QConvNode& node) {
  const float unit = node.attrs.x.scale / (node.epilogue.bounded() ? node.attrs.y.scale : 1);
  const Tensor& w = *call.in(1).constant;
  const auto weights = w.as<std::int8_t>();
  const auto scales = call.in(QConvAttrs::kScale).constant->as<float>();
  const auto bias = call.in(QConvAttrs::kBias).constant->as<std::int32_t>();
  const std::size_t per_filter = weights.size() / bias.size();
  for (std::size_t f = 0; f < bias.size(); ++f) {
    std::int64_t sum = 0;
    for (const std::int8_t value : weights.subspan(f * per_filter, per_filter)) sum += value;
    // Sums wrap around and come back: what counts is the end.
    begin.push_back(static_cast<std::int32_t>(bias[f] - sum * node.attrs.x.zero_point));
    scale.push_back(unit * scales[f]);
  }
}

Verdict accepts_qconv(const Call& call, const Target&) {
  std::optional<QConvAttrs> attrs;
  try {
    attrs.emplace(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  if (call.inputs.size() != attrs->inputs()) return no("the attributes ask for other inputs");
  constexpr DType kTypes[] = {DType::u8, DType::i8, DType::f32, DType::i32, DType::u8};
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.in(i).dtype != kTypes[i]) return no("is not " + std::string(name(kTypes[i])), call.in(i).name);
  }
  return yes();
}

Verdict accepts_qconv_vectors(const Call& call, const Target& target, std::size_t max_rank) {
  if (Verdict verdict = accepts_qconv(call, target); !verdict) return verdict;
  const QConvAttrs attrs(call);
  const Operand& w = call.in(1);
  if (Verdict verdict = accepts_weights(attrs.conv, w, max_rank); !verdict) return verdict;
  const Operand &scale = call.in(QConvAttrs::kScale), &bias = call.in(QConvAttrs::kBias);
  for (const Operand* in : {&scale, &bias}) {
    if (!in->constant) return no("is not constant", in->name);
    if (in->constant->dims() != Dims{w.constant->dims()[0]}) return no("has not one entry per filter", in->name);
  }
  const double products = 255.0 * 128 * static_cast<double>(w.constant->elements() / w.constant->dims()[0]);
  const auto scales = scale.constant->as<float>();
  const auto biases = bias.constant->as<std::int32_t>();
  double largest = 0;
  for (std::size_t f = 0; f < scales.size(); ++f) {
    const double sum = products + std::abs(static_cast<double>(biases[f]));
    if (sum > 2e9) return no("sums may leave the range of 32 bits", w.name);
    largest = std::max(largest, sum * std::abs(static_cast<double>(scales[f])));
    if (!std::isfinite(scales[f])) return no("scale is not finite", scale.name);
  }
  if (!(largest_steps(call, attrs, largest) < 1e9)) return no("scales are too far apart", scale.name);
  return accepts_copy(call);
}

Verdict accepts_qconv_depthwise(const Call& call, const Target& target) {
  if (Verdict verdict = accepts_qconv_vectors(call, target); !verdict) return verdict;
  const Operand& w = call.in(1);
  if (w.constant->dims()[0] != CallAttrs(call).integer("group") || w.constant->dims()[1] != 1)
    return no("is not one filter per channel", w.name);
  const ops::ConvAttrs conv(call);
  if (!conv.x_last || !conv.y_last) return no("channels are not last", call.in(0).name);
  return yes();
}

double qconv_cost(const Call& call, const Target& target, double share) {
  // Operands of one byte; conv_bytes counts four.
  return std::max(target.compute(ops::conv_flops(call) / 4, share), target.stream(conv_bytes(call) / 4));
}

}  // namespace modelflow::cpu
