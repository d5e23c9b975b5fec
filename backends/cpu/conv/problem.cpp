// Reads and checks calls of Conv and ConvBf16, and estimates their work.
#include "backends/cpu/conv/problem.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "backends/cpu/frame/typed_input.h"

namespace modelflow::cpu {
namespace {

[[noreturn]] void mismatch(const std::string& what) { throw Error(ErrorKind::invalid_input, "Conv: " + what); }

View tensor(Invocation& call, std::size_t index, bool may_be_bf16 = false) {
  View view = call.input(index);
  if (view.dtype != DType::f32 && !(may_be_bf16 && view.dtype == DType::bf16))
    mismatch("input " + std::to_string(index) + " is " + std::string(name(view.dtype)));
  return view;
}

/// A number for each channel of x, from input `index`.
const float* of_channels(const ConvNode& node, std::size_t index, Invocation& call) {
  const View given = tensor(call, index);
  const Dims wanted = {node.weights[1] * node.conv.group};
  if (!std::ranges::equal(given.dims, wanted))
    mismatch("input " + std::to_string(index) + " is " + text(given.dims) + " for " + std::to_string(wanted[0]) +
             " channels");
  return static_cast<const float*>(given.data);
}

/// A number for each filter, from input `index` (0: none of them), and zeros behind: tiles read four vectors of them
/// from the first filter of a group on.
const float* padded(const ConvNode& node, std::size_t index, Invocation& call) {
  const auto filters = static_cast<std::size_t>(node.weights[0]);
  const std::size_t room = (filters + 63 + 63) / 64 * 64;
  auto* numbers = reinterpret_cast<float*>(call.scratch(room * sizeof(float)));
  std::memset(numbers, 0, room * sizeof(float));
  if (index == 0) return numbers;
  const View given = tensor(call, index);
  if (given.dims.size() != 1 || given.dims[0] != node.weights[0])
    mismatch("input " + std::to_string(index) + " is " + text(given.dims) + " for " + std::to_string(filters) +
             " filters");
  std::memcpy(numbers, given.data, filters * sizeof(float));
  return numbers;
}

/// Whether windows see one position of this axis, as results do.
bool is_single(const ops::ConvAttrs& conv, std::size_t axis) {
  return conv.kernel[axis] == 1 && conv.strides[axis] == 1 && conv.pads[axis] == 0 &&
         conv.pads[axis + conv.rank()] == 0;
}

/// Of three axes: windows that see pixels of one plane, all of whose pixels are one row then ([3, 1, 1], [1, 1, 1]).
bool sees_pixels(const ops::ConvAttrs& conv) { return is_single(conv, 1) && is_single(conv, 2); }
/// Or a plane each, which are images then ([1, 3, 3]).
bool sees_planes(const ops::ConvAttrs& conv) { return is_single(conv, 0) && conv.x_last && conv.y_last; }

std::size_t axes_of(const ops::ConvAttrs& conv) {
  return conv.rank() == 3 && (sees_pixels(conv) || sees_planes(conv)) ? 2 : conv.rank();
}

}  // namespace

ConvNode::ConvNode(const Call& call)
    : conv(call), activation(activation_of(call)), weights(call.in(1).constant->dims()) {}

ConvGeometry conv_geometry(const ops::ConvAttrs& conv, const Dims& weights, std::span<const std::int64_t> x) {
  const std::size_t rank = conv.rank();
  if (x.size() != rank + 2) mismatch("x is " + text(x) + ", weights have " + std::to_string(rank) + " axes");
  const std::int64_t channels = x[conv.x_last ? rank + 1 : 1];
  if (channels != weights[1] * conv.group)
    mismatch("x has " + std::to_string(channels) + " channels, weights ask for " +
             std::to_string(weights[1] * conv.group));
  const Dims y = conv.output_dims(x, weights[0]);
  const std::size_t first_x = conv.x_last ? 1 : 2, first_y = conv.y_last ? 1 : 2, last = rank - 1;
  ConvGeometry p{};
  p.batch = x[0], p.channels = channels, p.filters = weights[0];
  p.x_last = conv.x_last, p.y_last = conv.y_last;
  p.width = x[first_x + last], p.columns = y[first_y + last];
  p.kernel_w = conv.kernel[last], p.stride_w = conv.strides[last], p.dilation_w = conv.dilations[last];
  p.left = conv.pads[last];
  p.height = p.rows = p.kernel_h = p.stride_h = p.dilation_h = 1;
  const bool pixels = rank == 3 && sees_pixels(conv), planes = rank == 3 && !pixels && sees_planes(conv);
  if (rank > 1) {
    const std::size_t h = pixels ? 0 : last - 1;
    p.height = x[first_x + h], p.rows = y[first_y + h], p.kernel_h = conv.kernel[h], p.stride_h = conv.strides[h];
    p.dilation_h = conv.dilations[h], p.top = conv.pads[h];
  }
  if (pixels) {
    p.width = p.columns = x[first_x + 1] * x[first_x + 2];
  } else if (planes) {
    p.batch *= x[first_x];
  } else if (rank == 3) {
    p.depth = x[first_x], p.planes = y[first_y], p.kernel_d = conv.kernel[0], p.front = conv.pads[0];
  }
  // A single tap has no distance to a next one, whatever the attribute says.
  if (p.kernel_h == 1) p.dilation_h = 1;
  if (p.kernel_w == 1) p.dilation_w = 1;
  return p;
}

ConvProblem ConvNode::problem(Invocation& call) const {
  const ConvBf16Problem p = operands(call, false);
  const auto *x = static_cast<const float*>(p.x.data), *added = static_cast<const float*>(p.added.data);
  const float* slopes = conv.has_slopes ? padded(*this, conv.slopes_index(), call) : nullptr;
  const float* scale = conv.has_pre ? of_channels(*this, conv.pre_index(), call) : nullptr;
  const float* shift = conv.has_pre ? of_channels(*this, conv.pre_index() + 1, call) : nullptr;
  return {p, x, p.bias, added, static_cast<float*>(p.y), p.residual, p.activation, slopes, scale, shift};
}

ConvBf16Problem ConvNode::operands(Invocation& call, bool may_be_bf16) const {
  if (call.inputs() != conv.inputs()) mismatch("got " + std::to_string(call.inputs()) + " inputs");
  const View x = tensor(call, 0, may_be_bf16);
  ConvBf16Problem p{conv_geometry(conv, weights, x.dims), x, {}, nullptr, nullptr, conv.residual, activation};
  const Dims y = conv.output_dims(x.dims, weights[0]);
  p.bias = padded(*this, conv.has_bias ? 2 : 0, call);
  if (p.residual != ops::Residual::none) {
    p.added = tensor(call, conv.residual_index(), may_be_bf16);
    if (!std::ranges::equal(p.added.dims, y))
      mismatch("residual is " + text(p.added.dims) + ", the result is " + text(y));
  }
  p.y = call.output(0, y);
  return p;
}

namespace {

template <class Fits>
Verdict accepts_operands(const Call& call, std::size_t max_axes, bool may_pre, Fits fits) {
  std::optional<ops::ConvAttrs> conv;
  try {
    conv.emplace(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  if (call.inputs.size() != conv->inputs()) return no("the attributes ask for other inputs");
  if (conv->has_pre && !may_pre) return no("activates its operand first", call.in(0).name);
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (!fits(i, *conv)) return no("is " + std::string(name(call.in(i).dtype)), call.in(i).name);
  return accepts_weights(*conv, call.in(1), max_axes);
}

}  // namespace

Verdict accepts_conv(const Call& call, std::size_t max_axes, bool may_pre) {
  return accepts_operands(call, max_axes, may_pre,
                          [&](std::size_t i, const ops::ConvAttrs&) { return call.in(i).dtype == DType::f32; });
}

Verdict accepts_conv_bf16(const Call& call, std::size_t max_axes) {
  return accepts_operands(call, max_axes, false, [&](std::size_t i, const ops::ConvAttrs& conv) {
    const DType is = call.in(i).dtype;
    if (conv.has_slopes) return false;
    if (i == 1) return is == DType::bf16;
    return is == DType::f32 || (is == DType::bf16 && !(conv.has_bias && i == 2));
  });
}

Verdict accepts_weights(const ops::ConvAttrs& conv, const Operand& w, std::size_t max_axes) {
  if (!w.constant) return no("weights are not constant", w.name);
  if (w.constant->rank() != conv.rank() + 2) return no("weights do not fit kernel_shape", w.name);
  if (axes_of(conv) > max_axes) return no("has " + std::to_string(conv.rank()) + " spatial axes", w.name);
  if (!std::equal(conv.kernel.begin(), conv.kernel.end(), w.constant->dims().begin() + 2))
    return no("weights do not fit kernel_shape", w.name);
  if (w.constant->elements() == 0) return no("weights are empty", w.name);
  if (w.constant->dims()[0] % conv.group != 0) return no("group does not divide the filters", w.name);
  // Positions in an image are counted in 32 bits, sizes of its copies in 64.
  constexpr std::int64_t kMost = 1 << 20;
  for (std::size_t axis = 0; axis < conv.rank(); ++axis) {
    if (conv.strides[axis] > kMost || conv.pads[axis] > kMost || conv.pads[axis + conv.rank()] > kMost ||
        conv.dilations[axis] > kMost / conv.kernel[axis])
      return no("has a window of extraordinary size", w.name);
  }
  return yes();
}

std::int64_t conv_tasks(double worth, std::int64_t threads, double least) {
  return threads < 2 || worth < least ? 1 : std::min(static_cast<std::int64_t>(worth), 6 * threads);
}

double conv_bytes(const Call& call) {
  double bytes = 0;
  const auto add = [&](const Operand& operand) {
    bytes += (operand.dtype == DType::bf16 ? 2 : 4) * operand.shape.known_elements();
  };
  for (const Operand& in : call.inputs) add(in);
  for (const Operand& out : call.outputs) add(out);
  return bytes;
}

}  // namespace modelflow::cpu
