// The fused op ConvTranspose: transposed convolution whose windows do not overlap.
#include "backends/ops/conv_transpose.h"

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/work.h"

namespace modelflow::ops {
namespace {

bool has_bias(const Call& call) { return CallAttrs(call).flag("has_bias"); }

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names = {"x", "w"};
  if (has_bias(call)) names.emplace_back("bias");
  return names;
}

std::string body(const Call& call, int opset) {
  const std::size_t rank = call.in(1).shape.rank();
  return "{\n" + transpose_text("x_first", "x", rank, false) +
         "product = ConvTranspose <strides: ints = @strides> (x_first, w" + (has_bias(call) ? ", bias" : "") + ")\n" +
         activation_body(call, opset, "product", "y_first") + transpose_text("y", "y_first", rank, true) + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names = {"strides"};
  for (std::string& name : activation_attributes(call, opset)) names.push_back(std::move(name));
  return names;
}

Verdict infer(Call& call) {
  if (call.inputs.size() != (has_bias(call) ? 3u : 2u)) return no("the attributes ask for another number of inputs");
  if (Verdict v = check_activation(call); !v) return v;
  if (Verdict v = infer_conv_transpose(call, true, call.in(0).dtype); !v || !has_bias(call)) return v;
  const Operand& bias = call.in(2);
  const bool fits = !bias.shape.known() || (bias.shape.rank() == 1 && bias.shape[0] == call.in(1).shape[1]);
  return fits ? yes() : no("is not one number per filter", bias.name);
}

void add(Samples& all, Dims x, Dims w, std::int64_t bias, const char* activation) {
  Attrs attrs = activation_sample(activation);
  attrs.set("has_bias", Attr(bias));
  attrs.set("strides", Ints(w.begin() + 2, w.end()));
  all.calls.push_back({"ConvTranspose", std::move(attrs), {all.operand("x", x), all.operand("w", w, x.back())}, {}});
  if (bias) all.calls.back().inputs.push_back(all.operand("bias", {w[1]}, 4));
  if (!infer(all.calls.back())) throw Error(ErrorKind::internal, "a sample of ConvTranspose contradicts itself");
  all.calls.back().outputs[0].name = "y";
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    add(all, {1, 40, 40, 24}, {24, 24, 2, 2}, 1, "Relu");
    add(all, {1, 80, 80, 24}, {24, 1, 2, 2}, 1, "Sigmoid");
    add(all, {1, 6, 5, 24}, {24, 24, 2, 2}, 1, "Relu");
    add(all, {2, 3, 37, 17}, {17, 2, 3, 2}, 0, "SiLU");
    add(all, {2, 5, 7, 33}, {33, 19, 2, 3}, 0, "SiLU");
    add(all, {2, 3, 4, 5}, {5, 40, 4, 4}, 1, "None");
    add(all, {0, 3, 4, 5}, {5, 40, 4, 4}, 1, "None");
    add(all, {2, 3, 2, 5, 16}, {16, 16, 2, 2, 2}, 1, "LeakyRelu");
    add(all, {1, 2, 3, 17, 9}, {9, 1, 3, 1, 2}, 1, "Relu");
    add(all, {2, 9, 7}, {7, 12, 4}, 1, "None");
    return all;
  }();
  return made.calls;
}

}  // namespace

Verdict infer_conv_transpose(Call& call, bool last, DType result) {
  const Ints strides = CallAttrs(call).ints("strides");
  const Shape &x = call.in(0).shape, &w = call.in(1).shape;
  if (!w.known() || w.rank() != strides.size() + 2 || w.rank() < 3) return no("weights do not fit", call.in(1).name);
  if (x.has_rank() && x.rank() != w.rank()) return no("rank differs from that of the weights", call.in(0).name);
  const std::size_t channel = last ? w.rank() - 1 : 1, first = last ? 1 : 2;
  if (x.has_rank() && x[channel].known() && !(x[channel] == w[0])) return no("channels differ", call.in(0).name);
  std::vector<Dim> y(w.rank());
  if (x.has_rank()) y = x.dims();
  y[channel] = w[1];
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (strides[i] < 1) return no("a stride is not positive");
    if (!(w[i + 2] == Dim(strides[i]))) return no("the window is not the stride", call.in(1).name);
    y[i + first] = y[i + first] * Dim(strides[i]);
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = result;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

extern const FusedOp conv_transpose_op = {
    .kind = "ConvTranspose",
    .doc = "Transposed convolution whose windows do not overlap, with bias and activation, channels last.",
    .names = 2,
    .min_inputs = 2,
    .max_inputs = 3,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = with_activation({{"strides", Ints{}}, {"has_bias", std::int64_t{0}}}),
    .family = Family::transposed_convolution,
    .weights = "w",
    .flops = conv_transpose_flops,
};

}  // namespace modelflow::ops
