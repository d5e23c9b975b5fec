// The fused op SqueezeExcite, and what QSqueezeExcite shares with it.
#include "backends/ops/squeeze_excite.h"

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/quantize_text.h"
#include "backends/ops/words.h"

namespace modelflow::ops {
namespace {

bool last(const Call& call) { return CallAttrs(call).text("layout") == "NHWC"; }

bool bytes(const Call& call) { return call.op == "QSqueezeExcite"; }

std::string gate(const Call& call) {
  if (CallAttrs(call).text("gate") == "Sigmoid") return "gate = Sigmoid (excited)\n";
  return "gate = HardSigmoid <alpha: float = @gate_alpha, beta: float = @gate_beta> (excited)\n";
}

Verdict agree(const Dim& a, const Dim& b, std::string_view value) {
  return !a.known() || !b.known() || a == b ? yes() : no("channels differ: " + a.str() + " and " + b.str(), value);
}

}  // namespace

// Behind w1 and its bias, and the scales of w1 where it is in 8 bits.
std::size_t second_weights(const Call& call) { return bytes(call) ? 4 : 3; }

std::vector<std::string> excite_inputs(const Call& call) {
  if (bytes(call)) return {"x", "w1", "w1_scale", "b1", "w2", "w2_scale", "b2"};
  return {"x", "w1", "b1", "w2", "b2"};
}

std::string excite_body(const Call& call, int opset) {
  const std::size_t rank = call.in(1).shape.rank();
  const bool skip = CallAttrs(call).flag("skip"), q = bytes(call);
  const std::string first = last(call) ? "x_first" : "x", end = last(call) ? "y_first" : "y";
  const std::string x = q ? "x_float" : first, y = q ? "y_float" : end;
  std::string text = "{\n";
  if (last(call)) text += transpose_text("x_first", "x", rank, false);
  const std::string w1 = q ? "w1_float" : "w1", w2 = q ? "w2_float" : "w2";
  if (q) {
    text += quantization_text("x_") + "x_float = DequantizeLinear (" + first + ", x_scale, x_zero)\n";
    for (const std::string w : {"w1", "w2"})
      text += w + "_float = DequantizeLinear <axis = 0> (" + w + ", " + w + "_scale)\n";
  }
  text += "mean = GlobalAveragePool (" + x + ")\nsqueezed = Conv (mean, " + w1 + ", b1)\n";
  text += activation_body(call, opset, "squeezed", "act");
  text += "excited = Conv (act, " + w2 + ", b2)\n" + gate(call);
  text += (skip ? "scaled" : y) + " = Mul (" + x + ", gate)\n";
  if (skip) text += y + " = Add (" + x + ", scaled)\n";
  if (q) text += quantization_text("y_") + end + " = QuantizeLinear (y_float, y_scale, y_zero)\n";
  if (last(call)) text += transpose_text("y", "y_first", rank, true);
  return text + "}";
}

std::vector<std::string> excite_attributes(const Call& call, int opset) {
  std::vector<std::string> names = activation_attributes(call, opset);
  if (CallAttrs(call).text("gate") != "Sigmoid") names.insert(names.end(), {"gate_alpha", "gate_beta"});
  if (bytes(call)) names.insert(names.end(), {"x_scale", "x_zero_point", "y_scale", "y_zero_point"});
  return names;
}

Attrs excite_defaults() {
  return with_activation({{"layout", std::string("NCHW")},
                          {"gate", std::string("Sigmoid")},
                          {"gate_alpha", 0.2f},
                          {"gate_beta", 0.5f},
                          {"skip", std::int64_t{0}}});
}

Verdict infer_excite(Call& call) {
  const std::size_t i2 = second_weights(call);
  if (call.inputs.size() != i2 + (bytes(call) ? 3 : 2)) return no("takes x and two convolutions with bias");
  if (Verdict v = check_activation(call); !v) return v;
  for (const char* prefix : {"x_", "y_"})
    if (Verdict v = bytes(call) ? check_quantization(call, prefix) : yes(); !v) return v;
  if (Verdict v = check_word(call, "layout", {"NCHW", "NHWC"}); !v) return v;
  if (Verdict v = check_word(call, "gate", {"Sigmoid", "HardSigmoid"}); !v) return v;
  const Shape &x = call.in(0).shape, &w1 = call.in(1).shape, &w2 = call.in(i2).shape;
  if (!w1.known() || !w2.known() || w1.rank() < 3 || w1.rank() != w2.rank()) return no("the weights have no shape");
  for (std::size_t i = 2; i < w1.rank(); ++i) {
    if (!(w1[i] == Dim(1)) || !(w2[i] == Dim(1))) return no("the windows are not 1", call.in(1).name);
  }
  if (Verdict v = agree(w1[0], w2[1], call.in(i2).name); !v) return v;
  if (Verdict v = agree(w1[1], w2[0], call.in(i2).name); !v) return v;
  for (const std::size_t i : bytes(call) ? std::vector<std::size_t>{1, 4} : std::vector<std::size_t>{}) {
    const Shape& scale = call.in(i + 1).shape;
    if (scale.known() && (scale.rank() != 1 || !(scale[0] == call.in(i).shape[0])))
      return no("is not one scale per filter", call.in(i + 1).name);
  }
  for (const std::size_t i : {std::size_t{1}, i2}) {
    const Operand& bias = call.in(i + (bytes(call) ? 2 : 1));
    if (bias.shape.known() && (bias.shape.rank() != 1 || !(bias.shape[0] == call.in(i).shape[0])))
      return no("is not one number per filter", bias.name);
  }
  if (x.has_rank()) {
    if (x.rank() != w1.rank()) return no("rank differs from that of the weights", call.in(0).name);
    if (Verdict v = agree(x[last(call) ? x.rank() - 1 : 1], w1[1], call.in(0).name); !v) return v;
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = x;
  return yes();
}

Call excite_sample(Samples& all, const ExciteSample& s) {
  const std::int64_t channels = std::string_view(s.layout) == "NHWC" ? s.x.back() : s.x[1];
  Dims w1(s.x.size(), 1), w2(s.x.size(), 1);
  w1[0] = w2[1] = s.squeezed;
  w1[1] = w2[0] = channels;
  Attrs attrs = activation_sample(s.activation);
  attrs.set("layout", s.layout).set("skip", Attr(s.skip));
  attrs.set("gate", s.gate).set("gate_alpha", Attr(0.2f)).set("gate_beta", Attr(0.5f));
  Call call{"SqueezeExcite", std::move(attrs), {}, {{"y", DType::f32, Shape::of(s.x)}}};
  call.inputs = {all.operand("x", s.x), all.operand("w1", w1, channels), all.operand("b1", {s.squeezed}, 4),
                 all.operand("w2", w2, s.squeezed), all.operand("b2", {channels}, 4)};
  return call;
}

namespace {

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    const auto add = [&all](const ExciteSample& sample) { all.calls.push_back(excite_sample(all, sample)); };
    add({{1, 20, 20, 384}, 96, "NHWC", "Relu", "HardSigmoid", 0});
    add({{1, 160, 160, 24}, 6, "NHWC", "Relu", "HardSigmoid", 1});
    add({{2, 7, 7, 672}, 28, "NHWC", "SiLU", "Sigmoid", 0});
    add({{2, 50, 9, 11}, 13, "NCHW", "Relu", "Sigmoid", 1});
    add({{3, 5, 37}, 3, "NHWC", "HardSwish", "HardSigmoid", 0});
    add({{1, 2, 3, 4, 19}, 5, "NHWC", "Relu", "Sigmoid", 0});
    add({{0, 4, 4, 8}, 2, "NHWC", "Relu", "Sigmoid", 0});
    return all;
  }();
  return made.calls;
}

/// The mean reads x before the product does.
double excite_bytes(const Call& call) { return 4 * call.in(0).shape.known_elements(); }

}  // namespace

extern const FusedOp squeeze_excite_op = {
    .kind = "SqueezeExcite",
    .doc = "Channels weighted by a gate that two 1x1 convolutions compute from their means.",
    .names = 2,
    .min_inputs = 5,
    .max_inputs = 5,
    .input_types = {DType::f32},
    .body = excite_body,
    .inputs = excite_inputs,
    .attributes = excite_attributes,
    .infer = infer_excite,
    .samples = samples,
    .defaults = excite_defaults(),
    .family = Family::squeeze_excite,
    .layouts = {"layout"},
    .plain_bytes = excite_bytes,
};

}  // namespace modelflow::ops
