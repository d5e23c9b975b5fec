// The fused ops QConvTranspose and QConvTransposeFloat: ConvTranspose of 8-bit numbers, with a result in 8 bits or in
// float32.
#include <algorithm>
#include <cmath>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/conv_transpose.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/quantize_text.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/words.h"
#include "backends/ops/work.h"

namespace modelflow::ops {
namespace {

constexpr const char *kBytes = "QConvTranspose", *kFloats = "QConvTransposeFloat";

bool last(const Call& call) { return CallAttrs(call).text("layout") == "NHWC"; }
bool to_bytes(const Call& call) { return call.op == kBytes; }
bool active(const Call& call) { return CallAttrs(call).text("activation") != "None"; }

std::vector<std::string> inputs(const Call&) { return {"x", "w", "w_scale", "bias"}; }

// As exporters of quantized models write it: the transposes stand outside of DequantizeLinear and QuantizeLinear.
std::string body(const Call& call, int opset) {
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "scales per channel need opset 13, the model has " + std::to_string(opset));
  const std::size_t rank = call.in(1).shape.rank();
  const std::string result = to_bytes(call) ? "real" : last(call) ? "y_first" : "y";
  std::string text =
      "{\n" + (last(call) ? transpose_text("x_first", "x", rank, false) : "") + quantization_text("x_") +
      "x_float = DequantizeLinear (" + (last(call) ? "x_first" : "x") +
      ", x_scale, x_zero)\n"
      "w_zero_float = Sub (w_scale, w_scale)\nw_zero = Cast <to = 3> (w_zero_float)\n"
      "w_float = DequantizeLinear <axis = 1> (w, w_scale, w_zero)\n"
      "bias_scale = Mul (w_scale, x_scale)\nbias_float = DequantizeLinear <axis = 0> (bias, bias_scale)\n" +
      (active(call) ? "product" : result) +
      " = ConvTranspose <strides: ints = @strides> (x_float, w_float, bias_float)\n";
  if (active(call)) text += activation_body(call, opset, "product", result);
  if (to_bytes(call))
    text += quantization_text("y_") + (last(call) ? "y_first" : "y") + " = QuantizeLinear (real, y_scale, y_zero)\n";
  return text + (last(call) ? transpose_text("y", "y_first", rank, true) : "") + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names = {"strides", "x_scale", "x_zero_point"};
  if (to_bytes(call)) names.insert(names.end(), {"y_scale", "y_zero_point"});
  if (active(call))
    for (std::string& name : activation_attributes(call, opset)) names.push_back(std::move(name));
  return names;
}

Verdict infer(Call& call) {
  if (call.inputs.size() != 4) return no("takes x, w, w_scale and bias");
  if (Verdict v = check_activation(call); !v) return v;
  if (Verdict v = check_word(call, "layout", {"NCHW", "NHWC"}); !v) return v;
  if (Verdict v = check_quantization(call, "x_"); !v) return v;
  if (Verdict v = to_bytes(call) ? check_quantization(call, "y_") : yes(); !v) return v;
  const Shape& w = call.in(1).shape;
  for (const std::size_t i : {2, 3}) {
    const Shape& shape = call.in(i).shape;
    if (shape.has_rank() && shape.rank() != 1) return no("is not of rank 1", call.in(i).name);
    if (shape.known() && w.known() && w.rank() > 1 && !(shape[0] == w[1]))
      return no("has not one entry per output channel", call.in(i).name);
  }
  const TransposedWindows windows = transposed_windows(call);
  if (w.known() && !windows.apart()) return no("the windows are not the strides, or are padded", call.in(1).name);
  return infer_conv_transpose(call, windows, last(call), to_bytes(call) ? DType::u8 : DType::f32);
}

Attrs defaults(bool bytes) {
  Attrs attrs = with_activation({{"strides", Ints{}}, {"layout", std::string("NCHW")}});
  for (const char* side : {"x_", "y_"}) {
    if (!bytes && side[0] == 'y') continue;
    attrs.set(std::string(side) + "scale", Attr(1.0f)).set(std::string(side) + "zero_point", Attr(std::int64_t{0}));
  }
  return attrs;
}

/// `x`: dims with channels last.
void add(Samples& all, const char* kind, Dims x, const Dims& w, const char* layout, const char* activation,
         std::int64_t x_zero, std::int64_t y_zero) {
  if (layout == std::string_view("NCHW")) std::rotate(x.begin() + 1, x.end() - 1, x.end());
  const bool bytes = kind == std::string_view(kBytes);
  Attrs attrs = with(defaults(bytes), activation_sample(activation));
  attrs.set("strides", Ints(w.begin() + 2, w.end())).set("layout", layout);
  attrs.set("x_scale", Attr(0.0203f)).set("x_zero_point", Attr(x_zero));
  const bool bounded = activation == std::string_view("Sigmoid");
  if (bytes) attrs.set("y_scale", Attr(bounded ? 0.00391f : 0.0307f)).set("y_zero_point", Attr(y_zero));
  const Tensor& steps = all.weights.emplace_back(sample_steps(w));
  const Tensor& scale = all.weights.emplace_back(Tensor::make(DType::f32, {w[1]}, [&](std::byte* to) {
    for (std::int64_t m = 0; m < w[1]; ++m)
      reinterpret_cast<float*>(to)[m] =
          (0.6f + 0.1f * static_cast<float>(m % 9)) / 127 / std::sqrt(static_cast<float>(w[0]));
  }));
  const Tensor& bias = all.weights.emplace_back(Tensor::make(DType::i32, {w[1]}, [&](std::byte* to) {
    for (std::int64_t m = 0; m < w[1]; ++m)
      reinterpret_cast<std::int32_t*>(to)[m] = static_cast<std::int32_t>((m * 7919) % 4001 - 2000);
  }));
  all.calls.push_back({kind,
                       std::move(attrs),
                       {{"x", DType::u8, Shape::of(x)},
                        constant_operand("w", steps),
                        constant_operand("w_scale", scale),
                        constant_operand("bias", bias)},
                       {}});
  if (!infer(all.calls.back())) throw Error(ErrorKind::internal, "a sample of QConvTranspose contradicts itself");
  all.calls.back().outputs[0].name = "y";
}

Samples samples_of(const char* kind) {
  Samples all;
  add(all, kind, {1, 40, 40, 24}, {24, 24, 2, 2}, "NHWC", "Relu", 0, 0);
  add(all, kind, {1, 80, 80, 24}, {24, 1, 2, 2}, "NHWC", "Sigmoid", 3, 0);
  add(all, kind, {2, 3, 37, 17}, {17, 2, 3, 2}, "NHWC", "SiLU", 128, 20);
  add(all, kind, {2, 5, 7, 33}, {33, 19, 2, 3}, "NCHW", "SiLU", 101, 9);
  add(all, kind, {1, 3, 600, 64}, {64, 40, 2, 2}, "NHWC", "HardSwish", 117, 13);
  add(all, kind, {2, 3, 4, 5}, {5, 40, 4, 4}, "NHWC", "None", 255, 128);
  add(all, kind, {2, 29, 12}, {12, 7, 2}, "NHWC", "LeakyRelu", 77, 100);
  add(all, kind, {2, 12, 9}, {9, 7, 4}, "NCHW", "None", 77, 100);
  add(all, kind, {0, 3, 4, 5}, {5, 40, 4, 4}, "NHWC", "None", 1, 2);
  return all;
}

std::vector<Call> samples_in_bytes() {
  static const Samples made = samples_of(kBytes);
  return made.calls;
}

std::vector<Call> samples_in_floats() {
  static const Samples made = samples_of(kFloats);
  return made.calls;
}

FusedOp op(const char* kind, const char* doc, DType result) {
  return {.kind = kind,
          .doc = doc,
          .names = 1,
          .min_inputs = 4,
          .max_inputs = 4,
          .input_types = {DType::u8, DType::i8, DType::f32, DType::i32},
          .body = body,
          .inputs = inputs,
          .attributes = attributes,
          .infer = infer,
          .samples = result == DType::u8 ? samples_in_bytes : samples_in_floats,
          .defaults = defaults(result == DType::u8),
          .output_type = result,
          .family = Family::transposed_convolution,
          .base = "ConvTranspose",
          .form = result == DType::u8 ? Form::i8 : Form::i8_to_f32,
          .layouts = {"layout"},
          .weights = "w",
          .flops = conv_transpose_flops};
}

}  // namespace

extern const FusedOp qconv_transpose_op =
    op(kBytes, "Transposed convolution of 8-bit numbers whose windows do not overlap, with bias and activation.",
       DType::u8);

extern const FusedOp qconv_transpose_float_op =
    op(kFloats, "The same with results in float32: the end of an 8-bit part of a model.", DType::f32);

}  // namespace modelflow::ops
