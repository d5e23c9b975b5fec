// The fused ops Quantize and Dequantize: between float32 and 8-bit numbers, with the channels moved where asked for.
#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/quantize_text.h"
#include "backends/ops/words.h"

namespace modelflow::ops {
namespace {

bool last(const Call& call, const char* side) { return CallAttrs(call).text(side) == "NHWC"; }

/// 1: channels move to the end, -1: to the second place, 0: they stay.
int turn(const Call& call) { return last(call, "y_layout") - last(call, "x_layout"); }

std::vector<std::string> inputs(const Call&) { return {"x"}; }
std::vector<std::string> attributes(const Call&, int) { return {"scale", "zero_point"}; }

/// The Cast changes nothing in float32: floats of 16 bits have the same body, hence the same name.
std::string quantize_body(const Call& call, int) {
  const bool moves = turn(call) != 0;
  std::string text = "{\n" + quantization_text("") + "x_float = Cast <to = 1> (x)\n" + (moves ? "plain" : "y") +
                     " = QuantizeLinear (x_float, scale, zero)\n";
  if (moves) text += transpose_text("y", "plain", call.in(0).shape.rank(), turn(call) > 0);
  return text + "}";
}

std::string dequantize_body(const Call& call, int) {
  const bool moves = turn(call) != 0;
  std::string text = "{\n" + quantization_text("");
  if (moves) text += transpose_text("plain", "x", call.in(0).shape.rank(), turn(call) > 0);
  return text + "y = DequantizeLinear (" + (moves ? "plain" : "x") + ", scale, zero)\n}";
}

Verdict infer(Call& call, DType result) {
  if (call.inputs.size() != 1) return no("takes one input");
  if (Verdict v = check_quantization(call, ""); !v) return v;
  for (const char* side : {"x_layout", "y_layout"})
    if (Verdict v = check_word(call, side, {"NCHW", "NHWC"}); !v) return v;
  const Shape& x = call.in(0).shape;
  call.outputs.resize(1);
  call.outputs[0].dtype = result;
  call.outputs[0].shape = x;
  if (turn(call) == 0) return yes();
  if (!x.has_rank() || x.rank() < 3) return no("rank unknown or below 3", call.in(0).name);
  std::vector<Dim> y = x.dims();
  turn(call) > 0 ? std::rotate(y.begin() + 1, y.begin() + 2, y.end())
                 : std::rotate(y.begin() + 1, y.end() - 1, y.end());
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

/// `first`: dims with channels second.
void add(std::vector<Call>& calls, const char* kind, Dims first, bool turns, float scale, std::int64_t zero) {
  const bool quantizes = std::string_view(kind) == "Quantize";
  const char *x_layout = turns && !quantizes ? "NHWC" : "NCHW", *y_layout = turns && quantizes ? "NHWC" : "NCHW";
  if (turns && !quantizes) std::rotate(first.begin() + 1, first.begin() + 2, first.end());
  Attrs attrs{{"scale", scale}, {"zero_point", zero}};
  attrs.set("x_layout", x_layout).set("y_layout", y_layout);
  calls.push_back({kind, std::move(attrs), {{"x", quantizes ? DType::f32 : DType::u8, Shape::of(first)}}, {}});
  if (!infer(calls.back(), quantizes ? DType::u8 : DType::f32))
    throw Error(ErrorKind::internal, "a sample of Quantize contradicts itself");
  calls.back().outputs[0].name = "y";
}

std::vector<Call> samples(const char* kind) {
  std::vector<Call> calls;
  add(calls, kind, {1, 3, 64, 75}, true, 0.0173f, 128);
  add(calls, kind, {2, 40, 13, 11}, true, 0.011f, 0);
  add(calls, kind, {1, 96, 28, 28}, true, 0.0213f, 7);
  add(calls, kind, {3, 17, 5}, true, 0.031f, 255);
  add(calls, kind, {2, 5, 3, 4, 2}, true, 0.002f, 100);  // much of it saturates
  add(calls, kind, {1, 197, 384}, false, 0.0213f, 121);
  add(calls, kind, {77}, false, 0.01f, 0);
  add(calls, kind, {}, false, 0.01f, 3);
  add(calls, kind, {0, 3, 4, 4}, true, 0.01f, 3);
  return calls;
}

Attrs defaults() {
  return {{"scale", 1.0f},
          {"zero_point", std::int64_t{0}},
          {"x_layout", std::string("NCHW")},
          {"y_layout", std::string("NCHW")}};
}

}  // namespace

extern const FusedOp quantize_op = {
    .kind = "Quantize",
    .doc = "QuantizeLinear to 8-bit numbers with one scale, which may move the channels to the end.",
    .names = 2,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::f32},
    .body = quantize_body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = [](Call& call) { return infer(call, DType::u8); },
    .samples = [] { return samples("Quantize"); },
    .defaults = defaults(),
    .output_type = DType::u8,
    .layouts = {"x_layout", "y_layout"},
};

extern const FusedOp dequantize_op = {
    .kind = "Dequantize",
    .doc = "DequantizeLinear of 8-bit numbers with one scale, which may move the channels to the second place.",
    .names = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::u8},
    .body = dequantize_body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = [](Call& call) { return infer(call, DType::f32); },
    .samples = [] { return samples("Dequantize"); },
    .defaults = defaults(),
    .layouts = {"x_layout", "y_layout"},
};

}  // namespace modelflow::ops
