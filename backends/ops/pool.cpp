// The fused op Pool: MaxPool, AveragePool or GlobalAveragePool with channels last.
#include "backends/ops/pool.h"

#include <limits>

#include "backends/call_attrs.h"
#include "backends/ops/layout_text.h"
#include "backends/ops/pool_extent.h"
#include "backends/ops/words.h"

namespace modelflow::ops {
namespace {

std::string mode(const Call& call) { return CallAttrs(call).text("mode"); }

bool bytes(const Call& call) { return call.op == "QPool"; }

constexpr int kCeilOpset = 10;  ///< poolings know ceil_mode from this opset on

}  // namespace

std::vector<std::string> pool_inputs(const Call&) { return {"x"}; }

// Averages of bytes: a scale of 1 makes numbers of them and rounds the result, half to even.
std::string pool_body(const Call& call, int opset) {
  if (bytes(call) && opset < 12)
    throw Error(ErrorKind::unsupported, "MaxPool of bytes needs opset 12, the model has " + std::to_string(opset));
  const std::size_t rank = call.in(0).shape.rank();
  const bool rounds = bytes(call) && mode(call) != "max";
  std::string window = "kernel_shape: ints = @kernel_shape, strides: ints = @strides, pads: ints = @pads";
  if (opset >= kCeilOpset) window += ", ceil_mode: int = @ceil_mode";
  const std::string x = rounds ? "x_float" : "x_first", y = rounds ? "y_float" : "y_first";
  std::string text = "{\n" + transpose_text("x_first", "x", rank, false);
  if (rounds)
    text +=
        "one = Constant <value = float {1}> ()\nzero = Constant <value = uint8 {0}> ()\n"
        "x_float = DequantizeLinear (x_first, one, zero)\n";
  if (mode(call) == "global_average") text += y + " = GlobalAveragePool (" + x + ")\n";
  if (mode(call) == "max") text += y + " = MaxPool <" + window + "> (" + x + ")\n";
  if (mode(call) == "average")
    text += y + " = AveragePool <" + window + ", count_include_pad: int = @count_include_pad> (" + x + ")\n";
  if (rounds) text += "y_first = QuantizeLinear (y_float, one, zero)\n";
  return text + transpose_text("y", "y_first", rank, true) + "}";
}

std::vector<std::string> pool_attributes(const Call& call, int opset) {
  if (mode(call) == "global_average") return {};
  std::vector<std::string> names = {"kernel_shape", "strides", "pads"};
  if (opset >= kCeilOpset) names.emplace_back("ceil_mode");
  if (mode(call) == "average") names.emplace_back("count_include_pad");
  return names;
}

Attrs pool_defaults() {
  return {{"mode", std::string("global_average")},
          {"kernel_shape", Ints{}},
          {"strides", Ints{}},
          {"pads", Ints{}},
          {"ceil_mode", std::int64_t{0}},
          {"count_include_pad", std::int64_t{0}}};
}

Verdict infer_pool(Call& call) {
  if (call.inputs.size() != 1) return no("takes one input");
  if (Verdict v = check_word(call, "mode", {"max", "average", "global_average"}); !v) return v;
  if (bytes(call) && CallAttrs(call).flag("count_include_pad"))
    return no("padding that counts would have to know the zero point");
  const Shape& x = call.in(0).shape;
  if (!x.has_rank() || x.rank() < 3) return no("rank unknown or below 3", call.in(0).name);
  const bool global = mode(call) == "global_average";
  const std::size_t spatial = x.rank() - 2;
  const Ints kernel = CallAttrs(call).ints("kernel_shape"), strides = CallAttrs(call).ints("strides");
  const Ints pads = CallAttrs(call).ints("pads");
  if (!global && (kernel.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial))
    return no("kernel_shape, strides and pads do not fit the rank", call.in(0).name);
  const bool ceil = CallAttrs(call).flag("ceil_mode");
  if (ceil && CallAttrs(call).flag("count_include_pad"))
    return no("runtimes do not agree on what counts of a window that hangs over the padding");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  std::vector<Dim> y = x.dims();
  for (std::size_t i = 0; i < spatial; ++i) {
    if (!global && (kernel[i] < 1 || kernel[i] > kMost || strides[i] < 1 || strides[i] > kMost || pads[i] < 0 ||
                    pads[i + spatial] < 0 || pads[i] >= kernel[i] || pads[i + spatial] >= kernel[i]))
      return no("kernel_shape, strides or pads out of range");
    if (global) {
      y[i + 1] = 1;
    } else if (y[i + 1].known()) {
      y[i + 1] = windows_in({y[i + 1].value(), pads[i], pads[i + spatial], kernel[i], strides[i], ceil});
    } else {
      y[i + 1] = strides[i] == 1 ? y[i + 1] + (pads[i] + pads[i + spatial] - kernel[i] + 1) : Dim();
    }
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

std::vector<Call> pool_samples(const char* kind, DType dtype) {
  std::vector<Call> calls;
  const auto add = [&](Dims x, const char* mode, Ints kernel = {}, Ints strides = {}, Ints pads = {},
                       std::int64_t include = 0, std::int64_t ceil = 0) {
    Attrs attrs{{"mode", std::string(mode)}, {"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}};
    attrs.set("count_include_pad", Attr(include)).set("ceil_mode", Attr(ceil));
    calls.push_back({kind, std::move(attrs), {{"x", dtype, Shape::of(x)}}, {}});
    if (!infer_pool(calls.back())) throw Error(ErrorKind::internal, "a sample of Pool contradicts itself");
    calls.back().outputs[0].name = "y";
  };
  add({1, 112, 112, 64}, "max", {3, 3}, {2, 2}, {1, 1, 1, 1});
  add({2, 6, 48, 200}, "max", {2, 2}, {2, 2}, {0, 0, 0, 0});
  add({1, 3, 40, 480}, "average", {3, 2}, {3, 2}, {0, 0, 0, 0});
  add({1, 9, 7, 13}, "average", {3, 3}, {1, 1}, {1, 1, 1, 1});
  if (dtype != DType::u8) add({1, 9, 7, 13}, "average", {3, 3}, {2, 1}, {1, 0, 1, 2}, 1);
  add({1, 20, 20, 96}, "global_average");
  add({2, 7, 7, 960}, "global_average");
  add({3, 33, 5}, "global_average");
  add({1, 30, 30, 37}, "global_average");
  add({2, 33, 5}, "max", {4}, {3}, {1, 2});
  add({1, 111, 54, 64}, "max", {3, 3}, {2, 2}, {0, 0, 0, 0}, 0, 1);
  add({1, 6, 7, 20}, "average", {2, 3}, {3, 2}, {1, 0, 1, 1}, 0, 1);
  add({0, 8, 8, 4}, "max", {2, 2}, {2, 2}, {0, 0, 0, 0});
  add({1, 1, 5, 6}, "max", {2, 2}, {2, 2}, {0, 0, 0, 0});
  add({1, 5, 2, 6}, "average", {2, 3}, {2, 3}, {0, 0, 0, 0});
  add({2, 5, 7, 6, 24}, "max", {3, 3, 3}, {2, 2, 2}, {1, 1, 1, 1, 1, 1});
  add({1, 4, 5, 7, 13}, "average", {2, 3, 2}, {1, 2, 3}, {0, 1, 1, 1, 1, 0}, 0, 1);
  add({1, 6, 4, 5, 8}, "max", {1, 2, 2}, {1, 2, 2}, {0, 0, 0, 0, 0, 0});
  add({0, 4, 4, 4, 8}, "average", {2, 2, 2}, {2, 2, 2}, {0, 0, 0, 0, 0, 0});
  add({2, 3, 5, 4, 20}, "global_average");
  return calls;
}

extern const FusedOp pool_op = {
    .kind = "Pool",
    .doc = "MaxPool, AveragePool or GlobalAveragePool with channels last.",
    .names = 3,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::f32},
    .body = pool_body,
    .inputs = pool_inputs,
    .attributes = pool_attributes,
    .infer = infer_pool,
    .samples = [] { return pool_samples("Pool", DType::f32); },
    .defaults = pool_defaults(),
};

}  // namespace modelflow::ops
