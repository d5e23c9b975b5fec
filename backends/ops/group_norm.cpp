// The fused op GroupNorm: group normalization, then an activation.
#include <string>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/words.h"

namespace modelflow::ops {
namespace {

bool last(const Call& call) { return CallAttrs(call).text("layout") == "NHWC"; }

std::vector<std::string> inputs(const Call&) { return {"x", "scale", "bias"}; }

/// rest: the extents of an image behind its channels.
std::string behind_channels(const std::string& x, std::size_t rank, int opset) {
  if (opset >= 15) return "rest = Shape <start = 2> (" + x + ")\n";
  return "two = Constant <value = int64[1] {2}> ()\nend = Constant <value = int64[1] {" + std::to_string(rank) +
         "}> ()\nextents = Shape (" + x + ")\nrest = Slice (extents, two, end)\n";
}

/// As PyTorch exports it, but for -1, which is refused for an empty batch, and for extents of 0, which are meant as
/// such (from opset 14 on; before, an extent of 0 behind an empty batch has no target). The number of groups stays an
/// attribute, so that one body serves all of them.
std::string body(const Call& call, int opset) {
  if (!call.in(0).shape.has_rank()) throw Error(ErrorKind::internal, "GroupNorm: the rank of x is unknown");
  if (opset < 12)
    throw Error(ErrorKind::unsupported, "GroupNorm needs the constants of opset 12, not " + std::to_string(opset));
  const std::size_t rank = call.in(0).shape.rank();
  const std::string x = last(call) ? "x_first" : "x", y = last(call) ? "y_first" : "y";
  std::string ones;
  for (std::size_t i = 2; i < rank; ++i) ones += ", 1";
  const std::string reshape = opset < 14 ? "Reshape (" : "Reshape <allowzero = 1> (";
  std::string text = "{\n";
  if (last(call)) text += transpose_text(x, "x", rank, false);
  text +=
      "zero = Constant <value = int64[1] {0}> ()\none = Constant <value = int64[1] {1}> ()\n"
      "count = Constant <value_int: int = @num_groups> ()\ngroups = Reshape (count, one)\n"
      "channels = Shape (scale)\nper = Div (channels, groups)\n" +
      behind_channels(x, rank, opset) + "dims = Shape (" + x + ")\nbatch = Slice (dims, zero, one)\n" +
      "split = Concat <axis = 0> (batch, groups, per, rest)\n"
      "unit = ConstantOfShape <value = float[1] {1}> (groups)\n"
      "nothing = ConstantOfShape <value = float[1] {0}> (groups)\n";
  text += "grouped = " + reshape + x + ", split)\n" +
          "normal = InstanceNormalization <epsilon: float = @epsilon> (grouped, unit, nothing)\n" +
          "whole = " + reshape + "normal, dims)\n";
  text += "beside = Constant <value = int64[" + std::to_string(rank - 1) + "] {-1" + ones + "}> ()\n" +
          "factor = Reshape (scale, beside)\nterm = Reshape (bias, beside)\n" + "scaled = Mul (whole, factor)\n";
  const bool active = CallAttrs(call).text("activation") != "None";
  text += (active ? "biased" : y) + " = Add (scaled, term)\n";
  if (active) text += activation_body(call, opset, "biased", y);
  if (last(call)) text += transpose_text("y", y, rank, true);
  return text + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  std::vector<std::string> names = {"num_groups", "epsilon"};
  for (std::string& name : activation_attributes(call, opset)) names.push_back(std::move(name));
  return names;
}

Verdict infer(Call& call) {
  if (call.inputs.size() != 3) return no("takes x, scale and bias");
  if (Verdict v = check_activation(call); !v) return v;
  if (Verdict v = check_word(call, "layout", {"NCHW", "NHWC"}); !v) return v;
  const Shape& x = call.in(0).shape;
  if (x.has_rank() && x.rank() < 3) return no("rank below 3", call.in(0).name);
  const Dim channels = x.has_rank() ? x[last(call) ? x.rank() - 1 : 1] : Dim();
  const std::int64_t groups = CallAttrs(call).integer("num_groups");
  if (groups < 1) return no("num_groups is not positive");
  if (channels.known() && channels.value() % groups != 0)
    return no(channels.str() + " channels are no multiple of the groups", call.in(0).name);
  for (std::size_t i : {1, 2}) {
    const Shape& shape = call.in(i).shape;
    if (!shape.has_rank() || shape.rank() != 1) return no("is not of rank 1", call.in(i).name);
    if (shape[0].known() && channels.known() && !(shape[0] == channels))
      return no("has not one entry per channel", call.in(i).name);
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = x;
  return yes();
}

void add(Samples& all, const Dims& x, std::int64_t groups, const char* layout, const char* activation) {
  const std::int64_t channels = std::string_view(layout) == "NHWC" ? x.back() : x[1];
  Attrs attrs = activation_sample(activation);
  attrs.set("layout", layout);
  attrs.set("num_groups", groups).set("epsilon", Attr(1e-5f));
  all.calls.push_back({"GroupNorm", std::move(attrs), {}, {{"y", DType::f32, Shape::of(x)}}});
  all.calls.back().inputs = {all.operand("x", x), all.operand("scale", {channels}, 4),
                             all.operand("bias", {channels}, 4)};
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    add(all, {1, 320, 32, 32}, 32, "NCHW", "SiLU");
    add(all, {1, 32, 32, 320}, 32, "NHWC", "SiLU");
    add(all, {2, 12, 5, 7}, 3, "NCHW", "None");
    add(all, {2, 5, 7, 12}, 3, "NHWC", "Relu");
    add(all, {2, 37, 9}, 37, "NCHW", "Gelu");
    add(all, {3, 9, 37}, 37, "NHWC", "None");
    add(all, {1, 6, 200, 131}, 1, "NCHW", "HardSwish");
    add(all, {1, 200, 131, 6}, 1, "NHWC", "None");
    add(all, {1, 4, 2, 3, 4}, 2, "NCHW", "None");
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp group_norm_op = {
    .kind = "GroupNorm",
    .doc = "Group normalization (instance normalization with one channel per group), then an activation.",
    .names = 2,
    .min_inputs = 3,
    .max_inputs = 3,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = with_activation({{"layout", std::string("NCHW")}, {"num_groups", std::int64_t{1}}, {"epsilon", 1e-5f}}),
    .in_place = true,
    .layouts = {"layout"},
};

}  // namespace modelflow::ops
