// Upsample of mode linear and cubic: ONNX's Resize by factors or to sizes, channels at either place.
#include "backends/ops/interpolation.h"

#include <array>
#include <charconv>
#include <cmath>

#include "backends/call_attrs.h"
#include "backends/ops/layout_text.h"

namespace modelflow::ops {
namespace {

bool last(const Call& call) { return CallAttrs(call).text("layout") == "NHWC"; }

/// What is said about the result, by sizes or by factors.
Verdict check_extents(const Call& call, std::size_t rank) {
  const Floats scales = CallAttrs(call).floats("scales");
  if (call.inputs.size() > 2) return no("takes x and sizes");
  if (call.inputs.size() == 2) {
    const Shape& sizes = call.in(1).shape;
    if (!scales.empty()) return no("has both scales and sizes");
    if (sizes.has_rank() && sizes.rank() != 1) return no("is no list", call.in(1).name);
    if (sizes.has_rank() && sizes[0].known() && !(sizes[0] == Dim(static_cast<std::int64_t>(rank))))
      return no("has not one size for each axis", call.in(1).name);
    return yes();
  }
  if (scales.size() != rank - 2) return no("scales do not fit the rank", call.in(0).name);
  for (const float scale : scales)
    if (!(scale > 0) || !std::isfinite(scale)) return no("scales are not positive");
  return yes();
}

/// As ONNX Runtime computes it, in float32.
Dim scaled(const Dim& extent, float scale) {
  constexpr float kLargest = 1e9F;
  const bool whole = scale == std::floor(scale) && scale < kLargest;
  if (extent.known()) {
    const float scaled = scale * static_cast<float>(extent.value());
    return scaled < kLargest ? Dim(static_cast<std::int64_t>(scaled)) : Dim();
  }
  return whole ? extent * Dim(static_cast<std::int64_t>(scale)) : Dim();
}

/// Lists of an attribute can be constants from opset 12 on; before, these are numbers in the text.
std::string scales_text(const Call& call, int opset) {
  if (opset >= 12)
    return "ones = Constant <value = float[2] {1, 1}> ()\neach = Constant <value_floats: floats = @scales> ()\n"
           "scales = Concat <axis = 0> (ones, each)\n";
  const Floats scales = CallAttrs(call).floats("scales");
  std::string list = "1, 1";
  for (const float scale : scales) {
    std::array<char, 32> digits = {};
    list += ", " + std::string(digits.data(), std::to_chars(digits.data(), digits.end(), scale).ptr);
  }
  return "scales = Constant <value = float[" + std::to_string(scales.size() + 2) + "] {" + list + "}> ()\n";
}

}  // namespace

bool interpolates(const Call& call) {
  const std::string mode = CallAttrs(call).text("mode");
  return mode == "linear" || mode == "cubic";
}

std::string interpolation_body(const Call& call, int opset) {
  const std::size_t rank = call.in(0).shape.rank();
  const bool turned = last(call), sized = call.has(1);
  std::string text = "{\n";
  if (turned) text += transpose_text("x_first", "x", rank, false);
  text += "roi = Constant <value = float[0] {}> ()\n";
  text += sized ? "scales = Constant <value = float[0] {}> ()\n" : scales_text(call, opset);
  text += std::string(turned ? "y_first" : "y") +
          " = Resize <mode: string = @mode, coordinate_transformation_mode: string = @coordinate_transformation_mode, "
          "cubic_coeff_a: float = @cubic_coeff_a, exclude_outside: int = @exclude_outside> (" +
          (turned ? "x_first" : "x") + ", roi, scales" + (sized ? ", sizes" : "") + ")\n";
  if (turned) text += transpose_text("y", "y_first", rank, true);
  return text + "}";
}

std::vector<std::string> interpolation_attributes(const Call& call, int opset) {
  std::vector<std::string> names = {"mode", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside"};
  if (!call.has(1) && opset >= 12) names.emplace_back("scales");
  return names;
}

Verdict infer_interpolation(Call& call) {
  const Shape& x = call.in(0).shape;
  if (!x.has_rank() || x.rank() < 3) return no("is of no rank, or of one below 3", call.in(0).name);
  if (Verdict verdict = check_extents(call, x.rank()); !verdict) return verdict;
  // What ONNX Runtime has no kernel for, there is no body of.
  const bool cubic = CallAttrs(call).text("mode") == "cubic";
  if (cubic && x.rank() != 4) return no("cubic is of two axes", call.in(0).name);
  if (!cubic && CallAttrs(call).flag("exclude_outside")) return no("only cubic leaves out what lies outside");
  const std::size_t first = last(call) ? 1 : 2;
  const Floats scales = CallAttrs(call).floats("scales");
  const Tensor* sizes = call.has(1) ? call.in(1).constant : nullptr;
  const Ints numbers = sizes ? sizes->to_ints() : Ints();
  if (sizes && numbers.size() != x.rank()) return no("has not one size for each axis", call.in(1).name);
  std::vector<Dim> y = x.dims();
  for (std::size_t i = 0; i < x.rank() - 2; ++i)
    y[first + i] = sizes ? Dim(numbers[i + 2]) : call.has(1) ? Dim() : scaled(x[first + i], scales[i]);
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

double plain_upsample_bytes(const Call& call) {
  if (!interpolates(call)) return 0;
  const double each = CallAttrs(call).text("mode") == "cubic" ? 64 : last(call) ? 8 : 32;
  return each * call.outputs.at(0).shape.known_elements();
}

std::vector<Call> interpolation_samples() {
  std::vector<Call> calls;
  const auto add = [&](const Dims& x, Attrs attrs, const Tensor* sizes = nullptr) {
    calls.push_back({"Upsample", std::move(attrs), {{"x", DType::f32, Shape::of(x)}}, {}});
    if (sizes) calls.back().inputs.push_back({"sizes", DType::i64, Shape::of(sizes->dims()), sizes});
    if (!infer_interpolation(calls.back())) throw Error(ErrorKind::internal, "a sample of Upsample contradicts itself");
    calls.back().outputs[0].name = "y";
  };
  const auto list = [](const Ints& numbers) {
    return Tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
  };
  static const Tensor scores = list({1, 21, 256, 256}), head = list({1, 256, 64, 64}), odd = list({2, 19, 5, 17});
  const auto mode = [](const char* how, const char* layout, const char* where = "half_pixel", Floats scales = {}) {
    Attrs attrs{{"mode", std::string(how)}, {"layout", std::string(layout)}};
    attrs.set("coordinate_transformation_mode", where);
    if (!scales.empty()) attrs.set("scales", scales);
    return attrs;
  };
  add({1, 21, 32, 32}, mode("linear", "NCHW"), &scores);                     // LRASPP, DeepLab
  add({1, 16, 16, 256}, mode("linear", "NHWC"), &head);                      // SegFormer
  add({1, 48, 48, 64}, mode("linear", "NHWC", "align_corners", {2, 2}));     // DPT
  add({1, 96, 96, 64}, mode("linear", "NHWC", "half_pixel", {0.5F, 0.5F}));  // pyramids
  add({1, 64, 64, 3}, mode("cubic", "NHWC", "half_pixel", {4, 4}));          // super resolution
  add({1, 64, 14, 14}, mode("cubic", "NCHW", "half_pixel", {1.5F, 1.5F}));   // embeddings of positions
  add({2, 19, 7, 13}, mode("linear", "NCHW", "asymmetric"), &odd);
  add({2, 9, 5}, mode("linear", "NHWC", "pytorch_half_pixel", {2.5F}));
  add({0, 4, 4, 8}, mode("linear", "NHWC", "half_pixel", {2, 2}));
  return calls;
}

}  // namespace modelflow::ops
