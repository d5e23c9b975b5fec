// The fused op Upsample: every pixel repeated a whole number of times.
#include "backends/ops/upsample.h"

#include "backends/call_attrs.h"
#include "backends/ops/layout_text.h"

namespace modelflow::ops {
namespace {

std::string body(const Call& call, int opset) {
  const Ints factors = CallAttrs(call).ints("factors");
  std::string scales = "1, 1";
  for (std::int64_t factor : factors) scales += ", " + std::to_string(factor);
  return upsample_body(
      call, opset,
      "scales = Constant <value = float[" + std::to_string(factors.size() + 2) + "] {" + scales + "}> ()\n");
}

std::vector<std::string> attributes(const Call&, int) { return {}; }

}  // namespace

std::vector<std::string> upsample_inputs(const Call&) { return {"x"}; }

std::string upsample_body(const Call& call, int opset, const std::string& scales) {
  if (opset < 11)
    throw Error(ErrorKind::unsupported, call.op + " needs the Resize of opset 11, not " + std::to_string(opset));
  const std::size_t rank = CallAttrs(call).ints("factors").size() + 2;
  return "{\n" + transpose_text("x_first", "x", rank, false) + "roi = Constant <value = float[0] {}> ()\n" + scales +
         "y_first = Resize <mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", nearest_mode = "
         "\"floor\"> (x_first, roi, scales)\n" +
         transpose_text("y", "y_first", rank, true) + "}";
}

Verdict infer_upsample(Call& call) {
  if (call.inputs.size() != 1) return no("takes one input");
  const Ints factors = CallAttrs(call).ints("factors");
  const Shape& x = call.in(0).shape;
  if (factors.empty()) return no("factors are missing");
  if (x.has_rank() && x.rank() != factors.size() + 2) return no("factors do not fit the rank", call.in(0).name);
  std::vector<Dim> y(factors.size() + 2);
  if (x.has_rank()) y = x.dims();
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] < 1) return no("factors below 1");
    y[i + 1] = y[i + 1] * Dim(factors[i]);
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

std::vector<Call> upsample_samples(const char* kind, DType dtype) {
  std::vector<Call> calls;
  const auto add = [&](Dims x, Ints factors) {
    calls.push_back({kind, {{"factors", factors}}, {{"x", dtype, Shape::of(x)}}, {}});
    if (!infer_upsample(calls.back())) throw Error(ErrorKind::internal, "a sample of Upsample contradicts itself");
    calls.back().outputs[0].name = "y";
  };
  add({1, 40, 40, 96}, {2, 2});
  add({1, 20, 20, 24}, {8, 8});
  add({2, 5, 7, 3}, {1, 3});
  add({2, 9, 5}, {2});
  add({0, 4, 4, 8}, {2, 2});
  return calls;
}

extern const FusedOp upsample_op = {
    .kind = "Upsample",
    .doc = "Every pixel repeated a whole number of times, channels last.",
    .names = 2,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::f32},
    .body = body,
    .inputs = upsample_inputs,
    .attributes = attributes,
    .infer = infer_upsample,
    .samples = [] { return upsample_samples("Upsample", DType::f32); },
    .defaults = {{"factors", Ints{}}},
    .family = Family::upsampling,
};

}  // namespace modelflow::ops
