// The fused op Upsample: images of another size, by pixels that are repeated a whole number of times or by new ones
// between them (interpolation.h).
#include "backends/ops/upsample.h"

#include "backends/call_attrs.h"
#include "backends/ops/interpolation.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/words.h"

namespace modelflow::ops {
namespace {

std::string body(const Call& call, int opset) {
  return interpolates(call) ? interpolation_body(call, opset) : upsample_body(call, opset);
}

std::vector<std::string> inputs(const Call& call) {
  return call.has(1) ? std::vector<std::string>{"x", "sizes"} : std::vector<std::string>{"x"};
}

std::vector<std::string> attributes(const Call& call, int opset) {
  return interpolates(call) ? interpolation_attributes(call, opset) : upsample_attributes(call, opset);
}

Verdict infer(Call& call) {
  if (Verdict v = check_word(call, "mode", {"nearest", "linear", "cubic"}); !v) return v;
  if (Verdict v = check_word(call, "layout", {"NCHW", "NHWC"}); !v) return v;
  if (Verdict v = check_word(call, "coordinate_transformation_mode",
                             {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"});
      !v)
    return v;
  if (interpolates(call)) return infer_interpolation(call);
  if (CallAttrs(call).text("layout") != "NHWC") return no("pixels are repeated channels last only");
  return infer_upsample(call);
}

/// The body gives Resize factors as float32.
constexpr std::int64_t kMostFactor = std::int64_t{1} << 24;

std::vector<Call> samples() {
  std::vector<Call> calls = upsample_samples("Upsample", DType::f32);
  for (Call& call : interpolation_samples()) calls.push_back(std::move(call));
  return calls;
}

}  // namespace

std::vector<std::string> upsample_inputs(const Call&) { return {"x"}; }

/// Before opset 12, numbers in the text: constants have no lists of an attribute there.
std::vector<std::string> upsample_attributes(const Call&, int opset) {
  return opset < 12 ? std::vector<std::string>{} : std::vector<std::string>{"factors"};
}

std::string upsample_body(const Call& call, int opset) {
  if (opset < 11)
    throw Error(ErrorKind::unsupported, call.op + " needs the Resize of opset 11, not " + std::to_string(opset));
  const Ints factors = CallAttrs(call).ints("factors");
  const std::size_t rank = factors.size() + 2;
  std::string scales = "1, 1";
  for (std::int64_t factor : factors) scales += ", " + std::to_string(factor);
  return "{\n" + transpose_text("x_first", "x", rank, false) + "roi = Constant <value = float[0] {}> ()\n" +
         (opset < 12 ? "scales = Constant <value = float[" + std::to_string(rank) + "] {" + scales + "}> ()\n"
                     : "ones = Constant <value = float[2] {1, 1}> ()\n"
                       "whole = Constant <value_ints: ints = @factors> ()\nfactors = Cast <to = 1> (whole)\n"
                       "scales = Concat <axis = 0> (ones, factors)\n") +
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
    if (factors[i] > kMostFactor) return no("factors that float32 does not hold");
    const Dim grown = y[i + 1] * Dim(factors[i]);
    if (y[i + 1].known() && grown.unknown()) return no("factors that no tensor has room for", call.in(0).name);
    y[i + 1] = grown;
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
    .doc =
        "Images of another size: every pixel repeated a whole number of times (channels last), or linear and cubic "
        "interpolation.",
    .names = 2,
    .min_inputs = 1,
    .max_inputs = 2,
    .input_types = {DType::f32, DType::i64},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"factors", Ints{}},
                 {"mode", std::string("nearest")},
                 {"layout", std::string("NHWC")},
                 {"scales", Floats{}},
                 {"coordinate_transformation_mode", std::string("half_pixel")},
                 {"cubic_coeff_a", -0.75F},
                 {"exclude_outside", std::int64_t{0}}},
    .family = Family::upsampling,
    .layouts = {"layout"},
    .plain_bytes = plain_upsample_bytes,
};

}  // namespace modelflow::ops
