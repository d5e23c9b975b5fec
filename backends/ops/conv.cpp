#include <optional>
#include <string>

#include "backends/ops.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/conv_attrs.h"

namespace modelflow::ops {
namespace {

std::string transpose(std::string_view y, std::string_view x, std::size_t rank, bool to_last) {
  std::string perm = "0";
  if (!to_last) perm += ", " + std::to_string(rank + 1);
  for (std::size_t axis = 0; axis < rank; ++axis) perm += ", " + std::to_string(axis + (to_last ? 2 : 1));
  if (to_last) perm += ", 1";
  return std::string(y) + " = Transpose <perm = [" + perm + "]> (" + std::string(x) + ")\n";
}

std::vector<std::string> inputs(const Call& call) {
  const ConvAttrs conv(call.attrs);
  std::vector<std::string> names = {"x", "w"};
  if (conv.has_bias) names.emplace_back("bias");
  if (conv.residual != Residual::none) names.emplace_back("residual");
  return names;
}

// Residual and activation stay in channels-second order, next to Conv, where every runtime looks for them to fuse.
std::string body(const Call& call, int opset) {
  const ConvAttrs conv(call.attrs);
  const bool active = call.attrs.text("activation", "None") != "None";
  std::string text = "{\n", at = "x";
  const auto name = [](std::string_view stem, bool last) { return last ? "y" : std::string(stem); };
  if (conv.x_last) text += transpose("x_first", "x", conv.rank(), false), at = "x_first";
  std::string other = "residual";
  if (conv.residual != Residual::none && conv.y_last)
    text += transpose("residual_first", "residual", conv.rank(), false), other = "residual_first";
  int left = 1 + (conv.residual != Residual::none) + active + conv.y_last;
  const auto next = [&](std::string_view stem) { return name(stem, --left == 0); };

  const std::string product = next("conv");
  text += product +
          " = Conv <kernel_shape: ints = @kernel_shape, strides: ints = @strides, dilations: ints = @dilations, "
          "pads: ints = @pads, group: int = @group> (" +
          at + ", w" + (conv.has_bias ? ", bias" : "") + ")\n";
  at = product;
  const auto add = [&] {
    const std::string sum = next("sum");
    text += sum + " = Add (" + at + ", " + other + ")\n";
    at = sum;
  };
  if (conv.residual == Residual::before) add();
  if (active) {
    const std::string act = next("act");
    text += activation_body(call.attrs, opset, at, act);
    at = act;
  }
  if (conv.residual == Residual::after) add();
  if (conv.y_last) text += transpose("y", at, conv.rank(), true);
  return text + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names = {"kernel_shape", "strides", "dilations", "pads", "group"};
  for (std::string& name : activation_attributes(call.attrs, opset)) names.push_back(std::move(name));
  return names;
}

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
  if (!conv.has_bias) return yes();
  const Shape& bias = call.in(2).shape;
  if (!bias.has_rank()) return yes();
  if (bias.rank() != 1) return no("bias is not of rank 1", call.in(2).name);
  return agree(bias[0], w.shape[0], "entries of the bias", call.in(2).name);
}

Verdict infer(Call& call) {
  std::optional<ConvAttrs> read;
  try {
    read.emplace(call.attrs);
  } catch (const Error& error) {
    return no(error.what());
  }
  const ConvAttrs& conv = *read;
  if (call.inputs.size() != conv.inputs())
    return no("the attributes ask for " + std::to_string(conv.inputs()) + " inputs");
  if (Verdict v = check_activation(call.attrs); !v) return v;
  if (Verdict v = check_weights(call, conv); !v) return v;
  std::vector<Dim> y(conv.rank() + 2);
  y[conv.y_last ? conv.rank() + 1 : 1] = call.in(1).shape[0];
  if (const Shape& x = call.in(0).shape; x.has_rank()) {
    y[0] = x[0];
    for (std::size_t axis = 0; axis < conv.rank(); ++axis)
      y[axis + (conv.y_last ? 1 : 2)] = output_extent(conv, axis, x[axis + (conv.x_last ? 1 : 2)]);
  }
  if (conv.residual != Residual::none) {
    const Operand& residual = call.in(conv.residual_index());
    if (residual.shape.has_rank()) {
      if (residual.shape.rank() != y.size()) return no("residual differs in rank from the result", residual.name);
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (Verdict v = agree(residual.shape[i], y[i], "shape of the residual", residual.name); !v) return v;
        if (y[i].unknown()) y[i] = residual.shape[i];
      }
    }
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

}  // namespace

const FusedOp conv_op = {
    .kind = "Conv",
    .doc = "Convolution with bias, residual sum and activation, with either channel order on each side.",
    .names = 16,
    .min_inputs = 2,
    .max_inputs = 4,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = conv_samples,
    .defaults = {{"kernel_shape", Ints{}},
                 {"strides", Ints{}},
                 {"dilations", Ints{}},
                 {"pads", Ints{}},
                 {"group", std::int64_t{1}},
                 {"has_bias", std::int64_t{0}},
                 {"residual", std::string("none")},
                 {"x_layout", std::string("NCHW")},
                 {"y_layout", std::string("NCHW")},
                 {"activation", std::string("None")},
                 {"alpha", 0.0f},
                 {"beta", 0.0f},
                 {"post_scale", 1.0f},
                 {"post_shift", 0.0f}},
};

}  // namespace modelflow::ops
