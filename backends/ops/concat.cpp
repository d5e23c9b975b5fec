// The fused op Concat: channels of several images side by side or in turn, smaller images upsampled.
#include "backends/call_attrs.h"
#include "backends/ops/layout_text.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) names.push_back("x" + std::to_string(i));
  return names;
}

bool grows(const Ints& factors, std::size_t input) { return factors[2 * input] != 1 || factors[2 * input + 1] != 1; }

bool shuffles(const Call& call) { return CallAttrs(call).ints("groups") != Ints{1}; }

/// ONNX text of [n, h, w, groups * each] to [n, h, w, each * groups], the channels of the groups in turn.
std::string shuffle_text(const std::string& y, const std::string& x) {
  return "zero = Constant <value_ints = [0]> ()\nthree = Constant <value_ints = [3]> ()\n"
         "four = Constant <value_ints = [4]> ()\ngroups = Constant <value_ints: ints = @groups> ()\n"
         "dims = Shape (" +
         x +
         ")\nlead = Slice (dims, zero, three)\nchannels = Slice (dims, three, four)\neach = Div (channels, groups)\n"
         "apart = Concat <axis = 0> (lead, groups, each)\nturn = Concat <axis = 0> (lead, channels)\n" +
         x + "_apart = Reshape (" + x + ", apart)\n" + x + "_turned = Transpose <perm = [0, 1, 2, 4, 3]> (" + x +
         "_apart)\n" + y + " = Reshape (" + x + "_turned, turn)\n";
}

std::string body(const Call& call, int opset) {
  if (shuffles(call) && opset < 12)
    throw Error(ErrorKind::unsupported, "Concat in groups needs opset 12, not " + std::to_string(opset));
  const Ints factors = CallAttrs(call).ints("factors");
  std::string text = "{\n", list;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string x = "x" + std::to_string(i);
    text += transpose_text(x + "_first", x, 4, false);
    list += (i ? ", " : "") + x + (grows(factors, i) ? "_grown" : "_first");
    if (!grows(factors, i)) continue;
    if (opset < 11)
      throw Error(ErrorKind::unsupported, "Concat with factors needs Resize-11, not opset " + std::to_string(opset));
    text += x + "_roi = Constant <value = float[0] {}> ()\n" + x + "_scales = Constant <value = float[4] {1, 1, " +
            std::to_string(factors[2 * i]) + ", " + std::to_string(factors[2 * i + 1]) + "}> ()\n" + x +
            "_grown = Resize <mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", nearest_mode = "
            "\"floor\"> (" +
            x + "_first, " + x + "_roi, " + x + "_scales)\n";
  }
  text += "y_first = Concat <axis = 1> (" + list + ")\n";
  if (!shuffles(call)) return text + transpose_text("y", "y_first", 4, true) + "}";
  return text + transpose_text("y_side", "y_first", 4, true) + shuffle_text("y", "y_side") + "}";
}

std::vector<std::string> attributes(const Call& call, int) {
  return shuffles(call) ? std::vector<std::string>{"groups"} : std::vector<std::string>{};
}

/// One image, or one of as many channels for each group: what kernels can take in turn without a copy.
Verdict check_groups(const Call& call) {
  const Ints groups = CallAttrs(call).ints("groups");
  if (groups.size() != 1 || groups[0] < 1) return no("groups is not one number");
  if (groups[0] == 1) return yes();
  const auto count = static_cast<std::int64_t>(call.inputs.size());
  if (count != 1 && count != groups[0]) return no("takes one image, or one for each group");
  for (const Operand& operand : call.inputs) {
    const Dim &channels = operand.shape[3], &first = call.in(0).shape[3];
    if (!channels.known()) continue;
    if (count == 1 && channels.value() % groups[0] != 0) return no("channels do not fit the groups", operand.name);
    if (first.known() && !(channels == first)) return no("groups differ in size", operand.name);
  }
  return yes();
}

Verdict infer(Call& call) {
  const Ints factors = CallAttrs(call).ints("factors");
  if (call.inputs.empty() || factors.size() != 2 * call.inputs.size()) return no("factors do not fit the inputs");
  std::vector<Dim> y(4);
  y[3] = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Shape& x = call.in(i).shape;
    if (factors[2 * i] < 1 || factors[2 * i + 1] < 1) return no("factors below 1", call.in(i).name);
    if (!x.has_rank() || x.rank() != 4) return no("is not of rank 4", call.in(i).name);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const Dim dim = axis ? x[axis] * Dim(factors[2 * i + axis - 1]) : x[axis];
      if (x[axis].known() && dim.unknown()) return no("factors that no tensor has room for", call.in(i).name);
      if (y[axis].known() && dim.known() && !(y[axis] == dim)) return no("extents differ", call.in(i).name);
      if (y[axis].unknown() || dim.known()) y[axis] = dim;
    }
    y[3] = y[3] + x[3];
  }
  if (Verdict v = check_groups(call); !v) return v;
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

std::vector<Call> samples() {
  std::vector<Call> calls;
  const auto add = [&](std::vector<Dims> shapes, Ints factors, std::int64_t groups = 1) {
    calls.push_back({"Concat", {{"factors", factors}, {"groups", Ints{groups}}}, {}, {}});
    for (std::size_t i = 0; i < shapes.size(); ++i)
      calls.back().inputs.push_back({"x" + std::to_string(i), DType::f32, Shape::of(shapes[i])});
    if (!infer(calls.back())) throw Error(ErrorKind::internal, "a sample of Concat contradicts itself");
    calls.back().outputs[0].name = "y";
  };
  add({{1, 20, 20, 24}, {1, 40, 40, 24}, {1, 80, 80, 24}, {1, 160, 160, 24}}, {8, 8, 4, 4, 2, 2, 1, 1});
  add({{2, 5, 7, 3}, {2, 5, 7, 19}}, {1, 1, 1, 1});
  add({{2, 4, 6, 5}, {2, 2, 2, 1}, {2, 4, 6, 16}}, {1, 1, 2, 3, 1, 1});
  add({{0, 4, 6, 5}, {0, 4, 6, 16}}, {1, 1, 1, 1});
  add({{1, 28, 28, 58}, {1, 28, 28, 58}}, {1, 1, 1, 1}, 2);
  add({{2, 14, 14, 240}}, {1, 1}, 3);
  return calls;
}

}  // namespace

extern const FusedOp concat_op = {
    .kind = "Concat",
    .doc =
        "Channels of several images side by side, or in turn (channel shuffle), channels last; smaller images are "
        "repeated to size.",
    .names = 3,
    .min_inputs = 1,
    .max_inputs = 8,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"factors", Ints{}}, {"groups", Ints{1}}},
};

}  // namespace modelflow::ops
