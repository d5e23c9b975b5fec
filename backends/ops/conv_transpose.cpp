// The fused op ConvTranspose: transposed convolution over one to three axes, channels last.
#include "backends/ops/conv_transpose.h"

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/work.h"

namespace modelflow::ops {
namespace {

bool has_bias(const Call& call) { return CallAttrs(call).flag("has_bias"); }
/// Windows that lie apart come without pads and output_padding.
bool padded(const Call& call) {
  return !CallAttrs(call).ints("pads").empty() || !CallAttrs(call).ints("output_padding").empty();
}

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names = {"x", "w"};
  if (has_bias(call)) names.emplace_back("bias");
  return names;
}

std::string body(const Call& call, int opset) {
  const std::size_t rank = call.in(1).shape.rank();
  return "{\n" + transpose_text("x_first", "x", rank, false) + "product = ConvTranspose <strides: ints = @strides" +
         (padded(call) ? ", pads: ints = @pads, output_padding: ints = @output_padding" : "") + "> (x_first, w" +
         (has_bias(call) ? ", bias" : "") + ")\n" + activation_body(call, opset, "product", "y_first") +
         transpose_text("y", "y_first", rank, true) + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names = {"strides"};
  if (padded(call)) names.insert(names.end(), {"pads", "output_padding"});
  for (std::string& name : activation_attributes(call, opset)) names.push_back(std::move(name));
  return names;
}

Verdict infer(Call& call) {
  if (call.inputs.size() != (has_bias(call) ? 3u : 2u)) return no("the attributes ask for another number of inputs");
  if (Verdict v = check_activation(call); !v) return v;
  if (CallAttrs(call).ints("pads").empty() != CallAttrs(call).ints("output_padding").empty())
    return no("pads and output_padding go together");
  const TransposedWindows windows = transposed_windows(call);
  if (Verdict v = infer_conv_transpose(call, windows, true, call.in(0).dtype); !v || !has_bias(call)) return v;
  const Operand& bias = call.in(2);
  const bool fits = !bias.shape.known() || (bias.shape.rank() == 1 && bias.shape[0] == call.in(1).shape[1]);
  return fits ? yes() : no("is not one number per filter", bias.name);
}

/// Windows that lie apart where no strides are given.
void add(Samples& all, Dims x, Dims w, std::int64_t bias, const char* activation, const Ints& strides = {},
         const Ints& pads = {}, const Ints& output_padding = {}) {
  Attrs attrs = activation_sample(activation);
  attrs.set("has_bias", Attr(bias));
  attrs.set("strides", strides.empty() ? Ints(w.begin() + 2, w.end()) : strides);
  if (!strides.empty()) attrs.set("pads", pads).set("output_padding", output_padding);
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
    add(all, {1, 160, 64}, {64, 32, 8}, 1, "LeakyRelu", {4}, {2, 2}, {0});
    add(all, {2, 11, 33}, {33, 20, 10}, 1, "None", {5}, {3, 3}, {1});
    add(all, {1, 16, 16, 64}, {64, 32, 4, 4}, 1, "Relu", {2, 2}, {1, 1, 1, 1}, {0, 0});
    add(all, {2, 5, 6, 16}, {16, 24, 4, 4}, 1, "SiLU", {2, 2}, {1, 1, 1, 1}, {0, 0});
    add(all, {2, 5, 7, 17}, {17, 3, 3, 3}, 0, "Tanh", {2, 2}, {1, 1, 1, 1}, {1, 1});
    add(all, {1, 4, 1, 8}, {8, 5, 5, 3}, 1, "SiLU", {3, 2}, {0, 2, 4, 0}, {2, 0});
    add(all, {1, 32, 32, 64}, {64, 3, 4, 4}, 1, "Tanh", {2, 2}, {1, 1, 1, 1}, {0, 0});
    add(all, {1, 500, 96}, {96, 1, 16}, 0, "None", {8}, {4, 4}, {0});
    add(all, {0, 4, 4, 8}, {8, 5, 4, 4}, 1, "None", {2, 2}, {1, 1, 1, 1}, {0, 0});
    add(all, {1, 2, 3, 4, 9}, {9, 6, 3, 4, 2}, 1, "Relu", {2, 2, 3}, {1, 1, 0, 1, 1, 0}, {1, 0, 2});
    return all;
  }();
  return made.calls;
}

}  // namespace

Verdict infer_conv_transpose(Call& call, const TransposedWindows& windows, bool last, DType result) {
  const Shape &x = call.in(0).shape, &w = call.in(1).shape;
  if (!w.known() || w.rank() != windows.axes() + 2 || w.rank() < 3) return no("weights do not fit", call.in(1).name);
  if (x.has_rank() && x.rank() != w.rank()) return no("rank differs from that of the weights", call.in(0).name);
  const std::size_t channel = last ? w.rank() - 1 : 1, first = last ? 1 : 2;
  if (x.has_rank() && x[channel].known() && !(x[channel] == w[0])) return no("channels differ", call.in(0).name);
  if (Verdict v = windows.check(); !v) return v;
  std::vector<Dim> y(w.rank());
  if (x.has_rank()) y = x.dims();
  y[channel] = w[1];
  for (std::size_t i = 0; i < windows.axes(); ++i) {
    Dim& extent = y[i + first];
    extent = extent * Dim(windows.strides[i]) + Dim(windows.more(i));
    if (extent.known() && extent.value() < 0) return no("the pads are larger than the result", call.in(0).name);
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = result;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

extern const FusedOp conv_transpose_op = {
    .kind = "ConvTranspose",
    .doc = "Transposed convolution with bias and activation, channels last.",
    .names = 2,
    .min_inputs = 2,
    .max_inputs = 3,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = with_activation(
        {{"strides", Ints{}}, {"pads", Ints{}}, {"output_padding", Ints{}}, {"has_bias", std::int64_t{0}}}),
    .family = Family::transposed_convolution,
    .weights = "w",
    .flops = conv_transpose_flops,
};

}  // namespace modelflow::ops
