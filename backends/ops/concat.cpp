// The fused op Concat: channels of several images side by side, smaller images upsampled.
#include "backends/ops.h"
#include "backends/ops/layout_text.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) names.push_back("x" + std::to_string(i));
  return names;
}

bool grows(const Ints& factors, std::size_t input) { return factors[2 * input] != 1 || factors[2 * input + 1] != 1; }

std::string body(const Call& call, int opset) {
  const Ints factors = call.attrs.ints("factors");
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
  return text + "y_first = Concat <axis = 1> (" + list + ")\n" + transpose_text("y", "y_first", 4, true) + "}";
}

std::vector<std::string> attributes(const Call&, int) { return {}; }

Verdict infer(Call& call) {
  const Ints factors = call.attrs.ints("factors");
  if (call.inputs.size() < 2 || factors.size() != 2 * call.inputs.size()) return no("factors do not fit the inputs");
  std::vector<Dim> y(4);
  y[3] = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Shape& x = call.in(i).shape;
    if (factors[2 * i] < 1 || factors[2 * i + 1] < 1) return no("factors below 1", call.in(i).name);
    if (!x.has_rank() || x.rank() != 4) return no("is not of rank 4", call.in(i).name);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const Dim dim = axis ? x[axis] * Dim(factors[2 * i + axis - 1]) : x[axis];
      if (y[axis].known() && dim.known() && !(y[axis] == dim)) return no("extents differ", call.in(i).name);
      if (y[axis].unknown() || dim.known()) y[axis] = dim;
    }
    y[3] = y[3] + x[3];
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

std::vector<Call> samples() {
  std::vector<Call> calls;
  const auto add = [&](std::vector<Dims> shapes, Ints factors) {
    calls.push_back({"Concat", {{"factors", factors}}, {}, {}});
    for (std::size_t i = 0; i < shapes.size(); ++i)
      calls.back().inputs.push_back({"x" + std::to_string(i), DType::f32, Shape::of(shapes[i])});
    if (!infer(calls.back())) throw Error(ErrorKind::internal, "a sample of Concat contradicts itself");
    calls.back().outputs[0].name = "y";
  };
  add({{1, 20, 20, 24}, {1, 40, 40, 24}, {1, 80, 80, 24}, {1, 160, 160, 24}}, {8, 8, 4, 4, 2, 2, 1, 1});
  add({{2, 5, 7, 3}, {2, 5, 7, 19}}, {1, 1, 1, 1});
  add({{2, 4, 6, 5}, {2, 2, 2, 1}, {2, 4, 6, 16}}, {1, 1, 2, 3, 1, 1});
  add({{0, 4, 6, 5}, {0, 4, 6, 16}}, {1, 1, 1, 1});
  return calls;
}

}  // namespace

const FusedOp concat_op = {
    .kind = "Concat",
    .doc = "Channels of several images side by side, channels last; smaller images are repeated to size.",
    .names = 3,
    .min_inputs = 2,
    .max_inputs = 8,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"factors", Ints{}}},
};

}  // namespace modelflow::ops
