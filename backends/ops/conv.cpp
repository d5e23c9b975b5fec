#include <optional>
#include <string>

#include "backends/ops.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/conv_attrs.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/read_attrs.h"

namespace modelflow::ops {
namespace {

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
  if (conv.x_last) text += transpose_text("x_first", "x", conv.rank() + 2, false), at = "x_first";
  std::string other = "residual";
  if (conv.residual != Residual::none && conv.y_last)
    text += transpose_text("residual_first", "residual", conv.rank() + 2, false), other = "residual_first";
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
  if (conv.y_last) text += transpose_text("y", at, conv.rank() + 2, true);
  return text + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names = {"kernel_shape", "strides", "dilations", "pads", "group"};
  for (std::string& name : activation_attributes(call.attrs, opset)) names.push_back(std::move(name));
  return names;
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<ConvAttrs> conv = read_attrs<ConvAttrs>(call, why);
  if (!conv) return why;
  return infer_conv(call, *conv, {.bias = conv->has_bias ? 2u : 0, .residual = conv->residual_index()});
}

}  // namespace

const FusedOp conv_op = {
    .kind = "Conv",
    .doc = "Convolution with bias, residual sum and activation, with either channel order on each side.",
    .names = 12,
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
