// The fused op QConv: convolution of 8-bit numbers with bias, residual sum and activation.
#include <optional>
#include <string>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/qconv_attrs.h"
#include "backends/ops/quantize_text.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/work.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names = {"x", "w", "w_scale", "bias"};
  if (ConvAttrs(call).residual != Residual::none) names.emplace_back("residual");
  return names;
}

// `of` (x or residual) as floats in channels-second order, named `of`_float.
std::string dequantized(const std::string& of, bool last, std::size_t rank) {
  const std::string first = last ? of + "_first" : of;
  return (last ? transpose_text(first, of, rank, false) : "") + quantization_text(of + "_") + of +
         "_float = DequantizeLinear (" + first + ", " + of + "_scale, " + of + "_zero)\n";
}

// As exporters of quantized models write it, so that runtimes which look for that form find it: everything between
// DequantizeLinear and QuantizeLinear in channels-second order, the transposes outside.
std::string body(const Call& call, int opset) {
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "scales per channel need opset 13, the model has " + std::to_string(opset));
  const ConvAttrs conv(call);
  const std::size_t rank = conv.rank() + 2;
  std::string text = "{\n" + dequantized("x", conv.x_last, rank), at = "conv";
  text +=
      "w_zero_float = Sub (w_scale, w_scale)\nw_zero = Cast <to = 3> (w_zero_float)\n"
      "w_float = DequantizeLinear <axis = 0> (w, w_scale, w_zero)\n"
      "bias_scale = Mul (w_scale, x_scale)\nbias_float = DequantizeLinear <axis = 0> (bias, bias_scale)\n"
      "conv = Conv <kernel_shape: ints = @kernel_shape, strides: ints = @strides, dilations: ints = @dilations, "
      "pads: ints = @pads, group: int = @group> (x_float, w_float, bias_float)\n";
  if (conv.residual != Residual::none) text += dequantized("residual", conv.y_last, rank);
  const auto add = [&] {
    text += "sum = Add (" + at + ", residual_float)\n";
    at = "sum";
  };
  if (conv.residual == Residual::before) add();
  if (CallAttrs(call).text("activation") != "None") {
    text += activation_body(call, opset, at, "act");
    at = "act";
  }
  if (conv.residual == Residual::after) add();
  text +=
      quantization_text("y_") + (conv.y_last ? "y_first" : "y") + " = QuantizeLinear (" + at + ", y_scale, y_zero)\n";
  return text + (conv.y_last ? transpose_text("y", "y_first", rank, true) : "") + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names = {"kernel_shape", "strides",      "dilations", "pads",        "group",
                                    "x_scale",      "x_zero_point", "y_scale",   "y_zero_point"};
  if (ConvAttrs(call).residual != Residual::none) names.insert(names.end(), {"residual_scale", "residual_zero_point"});
  for (std::string& name : activation_attributes(call, opset)) names.push_back(std::move(name));
  return names;
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<QConvAttrs> q = read_attrs<QConvAttrs>(call, why);
  if (!q) return why;
  const Operand& scale = call.in(QConvAttrs::kScale);
  if (scale.shape.has_rank() && scale.shape.rank() != 1) return no("scale of the weights is not of rank 1", scale.name);
  return infer_conv(call, q->conv, {.bias = QConvAttrs::kBias, .residual = QConvAttrs::kResidual});
}

}  // namespace

extern const FusedOp qconv_op = {
    .kind = "QConv",
    .doc =
        "Convolution of 8-bit numbers with bias, residual sum and activation, with either channel order on each side.",
    .names = 6,
    .min_inputs = 4,
    .max_inputs = 5,
    .input_types = {DType::u8, DType::i8, DType::f32, DType::i32, DType::u8},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = qconv_samples,
    .defaults = with_activation({{"kernel_shape", Ints{}},
                                 {"strides", Ints{}},
                                 {"dilations", Ints{}},
                                 {"pads", Ints{}},
                                 {"group", std::int64_t{1}},
                                 {"residual", std::string("none")},
                                 {"x_layout", std::string("NCHW")},
                                 {"y_layout", std::string("NCHW")},
                                 {"x_scale", 1.0f},
                                 {"x_zero_point", std::int64_t{0}},
                                 {"y_scale", 1.0f},
                                 {"y_zero_point", std::int64_t{0}},
                                 {"residual_scale", 1.0f},
                                 {"residual_zero_point", std::int64_t{0}}}),
    .output_type = DType::u8,
    .family = Family::convolution,
    .base = "Conv",
    .form = Form::i8,
    .layouts = {"x_layout", "y_layout"},
    .weights = "w",
    .flops = conv_flops,
};

}  // namespace modelflow::ops
