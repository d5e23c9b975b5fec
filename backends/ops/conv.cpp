// The fused op Conv: convolution with bias, activation and residual, and with what comes in front of it where a network
// normalizes and activates first.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/conv_attrs.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/work.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call& call) {
  const ConvAttrs conv(call);
  std::vector<std::string> names = {"x", "w"};
  if (conv.has_bias) names.emplace_back("bias");
  if (conv.has_slopes) names.emplace_back("slope");
  if (conv.has_pre) names.insert(names.end(), {"pre_scale", "pre_shift"});
  if (conv.residual != Residual::none) names.emplace_back("residual");
  return names;
}

bool all(const Ints& values, std::int64_t value) {
  return std::ranges::all_of(values, [&](std::int64_t v) { return v == value; });
}

std::string view_text(const char* op, const std::string& y, const std::string& x, int opset) {
  return y + " = " + op + (opset < 13 ? " <axes = [2]> (" + x + ")\n" : " (" + x + ", rows)\n");
}

/// A convolution along one axis as one of images of one row: ONNX Runtime's fast one knows two axes only. Strides, pads
/// and dilations of two axes cannot be made of references to those of one, so only where they do nothing.
std::string one_row_text(const std::string& y, const std::string& x, bool has_bias, int opset) {
  return (opset < 13 ? "" : "rows = Constant <value_ints: ints = [2]> ()\n") +
         view_text("Unsqueeze", "x_row", x, opset) + view_text("Unsqueeze", "w_row", "w", opset) +
         "conv_row = Conv <group: int = @group> (x_row, w_row" + (has_bias ? ", bias" : "") + ")\n" +
         view_text("Squeeze", y, "conv_row", opset);
}

/// A slope for each channel, beside channels that are second.
std::string slopes_text(std::size_t rank) {
  std::string target = "-1";
  for (std::size_t i = 0; i < rank; ++i) target += ", 1";
  return "slopes_shape = Constant <value = int64[" + std::to_string(rank + 1) + "] {" + target +
         "}> ()\nslopes = Reshape (slope, slopes_shape)\n";
}

/// Relu of a BatchNormalization that only scales and shifts, as runtimes know how to fuse it: mean 0, variance 1.
std::string pre_text(const std::string& y, const std::string& x) {
  return "pre_one = Constant <value = float[1] {1}> ()\npre_mean = Sub (pre_scale, pre_scale)\n"
         "pre_variance = Add (pre_mean, pre_one)\npre_normal = BatchNormalization <epsilon = 0.0> (" +
         x + ", pre_scale, pre_shift, pre_mean, pre_variance)\n" + y + " = Relu (pre_normal)\n";
}

std::string conv_text(const ConvAttrs& conv, const std::string& y, const std::string& x, int opset) {
  if (conv.rank() == 1 && all(conv.strides, 1) && all(conv.dilations, 1) && all(conv.pads, 0))
    return one_row_text(y, x, conv.has_bias, opset);
  return y +
         " = Conv <kernel_shape: ints = @kernel_shape, strides: ints = @strides, dilations: ints = @dilations, "
         "pads: ints = @pads, group: int = @group> (" +
         x + ", w" + (conv.has_bias ? ", bias" : "") + ")\n";
}

// Residual and activation stay in channels-second order, next to Conv, where every runtime looks for them to fuse.
std::string body(const Call& call, int opset) {
  const ConvAttrs conv(call);
  const bool active = CallAttrs(call).text("activation") != "None";
  std::string text = "{\n", at = "x";
  const auto name = [](std::string_view stem, bool last) { return last ? "y" : std::string(stem); };
  if (conv.x_last) text += transpose_text("x_first", "x", conv.rank() + 2, false), at = "x_first";
  if (conv.has_pre) text += pre_text("x_active", at), at = "x_active";
  std::string other = "residual";
  if (conv.residual != Residual::none && conv.y_last)
    text += transpose_text("residual_first", "residual", conv.rank() + 2, false), other = "residual_first";
  int left = 1 + (conv.residual != Residual::none) + active + conv.y_last;
  const auto next = [&](std::string_view stem) { return name(stem, --left == 0); };

  const std::string product = next("conv");
  text += conv_text(conv, product, at, opset);
  at = product;
  const auto join = [&](const char* op, std::string_view stem) {
    const std::string joined = next(stem);
    text += joined + " = " + op + " (" + at + ", " + other + ")\n";
    at = joined;
  };
  if (conv.residual == Residual::before) join("Add", "sum");
  if (conv.has_slopes) text += slopes_text(conv.rank());
  if (active) {
    const std::string act = next("act");
    text += activation_body(call, opset, at, act);
    at = act;
  }
  if (conv.residual == Residual::after) join("Add", "sum");
  if (conv.residual == Residual::times) join("Mul", "gated");
  if (conv.y_last) text += transpose_text("y", at, conv.rank() + 2, true);
  return text + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names = {"kernel_shape", "strides", "dilations", "pads", "group"};
  for (std::string& name : activation_attributes(call, opset)) names.push_back(std::move(name));
  return names;
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<ConvAttrs> conv = read_attrs<ConvAttrs>(call, why);
  if (!conv) return why;
  return infer_conv(call, *conv,
                    {.bias = conv->has_bias ? 2u : 0,
                     .residual = conv->residual_index(),
                     .slopes = conv->has_slopes ? conv->slopes_index() : 0,
                     .pre = conv->has_pre ? conv->pre_index() : 0});
}

}  // namespace

extern const FusedOp conv_op = {
    .kind = "Conv",
    .doc =
        "Convolution with bias, activation and residual, added or multiplied, of x or of "
        "Relu(x * pre_scale + pre_shift), with either channel order on each side.",
    .names = 8,
    .min_inputs = 2,
    .max_inputs = 7,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = conv_samples,
    .defaults = conv_defaults().set("pre_activation", "None"),
    .family = Family::convolution,
    .layouts = {"x_layout", "y_layout"},
    .weights = "w",
    .flops = conv_flops,
};

}  // namespace modelflow::ops
