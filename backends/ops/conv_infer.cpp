// The shape rule of convolutions, in either order of axes.
#include <string>

#include "backends/ops/activation_body.h"
#include "backends/ops/conv_attrs.h"

namespace modelflow::ops {
namespace {

Dim output_extent(const ConvAttrs& conv, std::size_t axis, const Dim& in) {
  if (in.known()) return conv.extent(axis, in.value());
  if (conv.strides[axis] != 1) return {};  // a quotient rounded down has no polynomial
  const std::size_t r = conv.rank();
  return in + (conv.pads[axis] + conv.pads[axis + r] - (conv.kernel[axis] - 1) * conv.dilations[axis]);
}

// Says no when two facts exclude each other; unknown dims agree with everything.
Verdict agree(const Dim& a, const Dim& b, std::string_view what, std::string_view value) {
  if (!a.known() || !b.known() || a == b) return yes();
  return no(std::string(what) + ": " + a.str() + " against " + b.str(), value);
}

Verdict check_weights(const Call& call, const ConvAttrs& conv) {
  const Operand& x = call.in(0);
  const Operand& w = call.in(1);
  if (!w.shape.has_rank() || w.shape.rank() != conv.rank() + 2)
    return no("weights are not of rank " + std::to_string(conv.rank() + 2), w.name);
  for (std::size_t axis = 0; axis < conv.rank(); ++axis) {
    if (Verdict v = agree(w.shape[axis + 2], conv.kernel[axis], "kernel_shape", w.name); !v) return v;
  }
  if (x.shape.has_rank()) {
    if (x.shape.rank() != conv.rank() + 2) return no("rank differs from that of the weights", x.name);
    const Dim& channels = x.shape[conv.x_last ? conv.rank() + 1 : 1];
    if (Verdict v = agree(channels, w.shape[1] * conv.group, "channels", x.name); !v) return v;
  }
  if (w.shape[0].known() && w.shape[0].value() % conv.group != 0) return no("group does not divide M", w.name);
  return yes();
}

// One number for each filter, or channel.
Verdict check_vector(const Operand& vector, const Dim& filters, const std::string& what) {
  if (!vector.shape.has_rank()) return yes();
  if (vector.shape.rank() != 1) return no(what + " is not of rank 1", vector.name);
  return agree(vector.shape[0], filters, "entries of the " + what, vector.name);
}

// Of the residual; dims of y that it knows better are taken over.
Verdict check_residual(const Operand& residual, std::vector<Dim>& y) {
  if (!residual.shape.has_rank()) return yes();
  if (residual.shape.rank() != y.size()) return no("residual differs in rank from the result", residual.name);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (Verdict v = agree(residual.shape[i], y[i], "shape of the residual", residual.name); !v) return v;
    if (y[i].unknown()) y[i] = residual.shape[i];
  }
  return yes();
}

}  // namespace

Verdict infer_conv(Call& call, const ConvAttrs& conv, ConvInputs at) {
  if (!at.slopes)
    if (Verdict v = check_activation(call); !v) return v;
  if (Verdict v = check_weights(call, conv); !v) return v;
  if (at.bias)
    if (Verdict v = check_vector(call.in(at.bias), call.in(1).shape[0], "bias"); !v) return v;
  if (at.slopes)
    if (Verdict v = check_vector(call.in(at.slopes), call.in(1).shape[0], "slope"); !v) return v;
  for (std::size_t i = at.pre; at.pre && i < at.pre + 2; ++i)
    if (Verdict v = check_vector(call.in(i), call.in(1).shape[1] * conv.group, "scale or shift"); !v) return v;
  std::vector<Dim> y(conv.rank() + 2);
  y[conv.y_last ? conv.rank() + 1 : 1] = call.in(1).shape[0];
  if (const Shape& x = call.in(0).shape; x.has_rank()) {
    y[0] = x[0];
    for (std::size_t axis = 0; axis < conv.rank(); ++axis)
      y[axis + (conv.y_last ? 1 : 2)] = output_extent(conv, axis, x[axis + (conv.x_last ? 1 : 2)]);
  }
  if (conv.residual != Residual::none) {
    if (Verdict v = check_residual(call.in(at.residual), y); !v) return v;
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

}  // namespace modelflow::ops
