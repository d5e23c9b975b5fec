// The fused op QAdd: the sum of two tensors of 8-bit numbers.
#include "backends/call_attrs.h"
#include "backends/ops/broadcast.h"
#include "backends/ops/quantize_text.h"
#include "backends/ops/words.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call&) { return {"a", "b"}; }

bool rectified(const Call& call) { return CallAttrs(call).text("activation") == "Relu"; }

std::string body(const Call& call, int) {
  std::string text = "{\n";
  text += quantization_text("a_") + quantization_text("b_") + quantization_text("y_");
  text += "a_float = DequantizeLinear (a, a_scale, a_zero)\nb_float = DequantizeLinear (b, b_scale, b_zero)\n";
  text += "sum = Add (a_float, b_float)\n";
  if (!rectified(call)) return text + "y = QuantizeLinear (sum, y_scale, y_zero)\n}";
  return text + "act = Relu (sum)\ny = QuantizeLinear (act, y_scale, y_zero)\n}";
}

std::vector<std::string> attributes(const Call&, int) {
  return {"a_scale", "a_zero_point", "b_scale", "b_zero_point", "y_scale", "y_zero_point"};
}

Verdict infer(Call& call) {
  if (call.inputs.size() != 2) return no("takes two inputs");
  for (const char* side : {"a_", "b_", "y_"})
    if (Verdict verdict = check_quantization(call, side); !verdict) return verdict;
  if (Verdict v = check_word(call, "activation", {"None", "Relu"}); !v) return v;
  const Shape &a = call.in(0).shape, &b = call.in(1).shape;
  call.outputs.resize(1);
  call.outputs[0].dtype = DType::u8;
  if (!a.has_rank() || !b.has_rank()) return yes();
  if (a.rank() != b.rank()) return no("the operands differ in rank", call.in(1).name);
  std::vector<Dim> y;
  for (std::size_t i = 0; i < a.rank(); ++i) {
    const std::optional<Dim> dim = broadcast(a[i], b[i]);
    if (!dim) return no("the operands do not broadcast", call.in(1).name);
    y.push_back(*dim);
  }
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

Attrs defaults() {
  Attrs attrs{{"activation", std::string("None")}};
  for (const char* side : {"a_", "b_", "y_"})
    attrs.set(std::string(side) + "scale", Attr(1.0f)).set(std::string(side) + "zero_point", Attr(std::int64_t{0}));
  return attrs;
}

std::vector<Call> samples() {
  std::vector<Call> calls;
  const auto add = [&calls](const Dims& dims, const char* activation, std::int64_t a_zero, std::int64_t y_zero,
                            const Dims& b = {}) {
    Call call{"QAdd", defaults(), {}, {}};
    call.attrs.set("activation", activation).set("a_scale", Attr(0.031f)).set("a_zero_point", Attr(a_zero));
    call.attrs.set("b_scale", Attr(0.017f)).set("b_zero_point", Attr(std::int64_t{99}));
    call.attrs.set("y_scale", Attr(0.025f)).set("y_zero_point", Attr(y_zero));
    call.inputs.push_back({"a", DType::u8, Shape::of(dims)});
    call.inputs.push_back({"b", DType::u8, Shape::of(b.empty() ? dims : b)});
    if (!infer(call)) throw Error(ErrorKind::internal, "a sample of QAdd contradicts itself");
    call.outputs[0].name = "y";
    calls.push_back(std::move(call));
  };
  add({1, 28, 28, 96}, "None", 120, 128);
  add({1, 160, 160, 24}, "Relu", 0, 0);
  add({2, 7, 13}, "Relu", 255, 17);
  add({77}, "None", 3, 250);
  add({0, 4, 4, 8}, "None", 0, 0);
  add({2, 9, 11, 19}, "Relu", 30, 0, {2, 1, 1, 19});
  add({1, 1, 40, 3}, "None", 30, 9, {5, 60, 40, 3});
  return calls;
}

}  // namespace

extern const FusedOp qadd_op = {
    .kind = "QAdd",
    .doc = "The sum of two tensors of 8-bit numbers with scales of their own, then Relu where asked for.",
    .names = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .input_types = {DType::u8},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = defaults(),
    .output_type = DType::u8,
    .form = Form::i8,
    .elementwise = true,
};

}  // namespace modelflow::ops
