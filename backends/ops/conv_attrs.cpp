// Reads and checks the attributes of a convolution.
#include "backends/ops/conv_attrs.h"

#include <limits>
#include <string>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/words.h"

namespace modelflow::ops {
namespace {

bool channels_last(const CallAttrs& attrs, std::string_view name) {
  return word(attrs, name, {"NCHW", "NHWC"}) == "NHWC";
}

/// What products of two extents and sums of some of them stay within 64 bits with.
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

Ints list(const CallAttrs& attrs, std::string_view name, std::size_t count, std::int64_t least) {
  Ints values = attrs.ints(name);
  if (values.size() != count)
    throw Error(ErrorKind::invalid_input, std::string(name) + " has " + std::to_string(values.size()) +
                                              " entries, kernel_shape asks for " + std::to_string(count));
  for (std::int64_t value : values) {
    if (value < least || value > kMost)
      throw Error(ErrorKind::invalid_input, std::string(name) + " contains " + std::to_string(value));
  }
  return values;
}

}  // namespace

ConvAttrs::ConvAttrs(const CallAttrs& attrs) {
  kernel = attrs.ints("kernel_shape");
  if (kernel.empty()) throw Error(ErrorKind::invalid_input, "kernel_shape is missing");
  kernel = list(attrs, "kernel_shape", kernel.size(), 1);
  strides = list(attrs, "strides", kernel.size(), 1);
  dilations = list(attrs, "dilations", kernel.size(), 1);
  pads = list(attrs, "pads", 2 * kernel.size(), 0);
  group = attrs.integer("group");
  if (group < 1 || group > kMost) throw Error(ErrorKind::invalid_input, "group is " + std::to_string(group));
  has_bias = attrs.flag("has_bias");
  has_slopes = attrs.text("activation") == "PRelu";
  has_pre = word(attrs, "pre_activation", {"None", "Relu"}) == "Relu";
  residual = residual_of(attrs);
  x_last = channels_last(attrs, "x_layout");
  y_last = channels_last(attrs, "y_layout");
}

std::int64_t ConvAttrs::extent(std::size_t axis, std::int64_t in) const {
  const std::int64_t room = in + pads[axis] + pads[axis + rank()] - (kernel[axis] - 1) * dilations[axis] - 1;
  return room < 0 ? 0 : room / strides[axis] + 1;
}

Dims ConvAttrs::output_dims(std::span<const std::int64_t> x, std::int64_t m) const {
  Dims y(rank() + 2);
  y[0] = x[0];
  y[y_last ? rank() + 1 : 1] = m;
  for (std::size_t axis = 0; axis < rank(); ++axis)
    y[axis + (y_last ? 1 : 2)] = extent(axis, x[axis + (x_last ? 1 : 2)]);
  return y;
}

Attrs conv_defaults() {
  return with_activation({{"kernel_shape", Ints{}},
                          {"strides", Ints{}},
                          {"dilations", Ints{}},
                          {"pads", Ints{}},
                          {"group", std::int64_t{1}},
                          {"has_bias", std::int64_t{0}},
                          {"residual", std::string("none")},
                          {"x_layout", std::string("NCHW")},
                          {"y_layout", std::string("NCHW")}});
}

Call conv_call(Dims x, Dims w, Attrs attrs) {
  const std::size_t rank = w.size() - 2;
  Attrs given = std::move(attrs);
  attrs = conv_defaults();
  attrs.set("kernel_shape", Ints(w.begin() + 2, w.end()));
  attrs.set("strides", Ints(rank, 1)).set("dilations", Ints(rank, 1)).set("pads", Ints(2 * rank, 0));
  for (const auto& [name, value] : given) attrs.set(name, value);
  Call call{"Conv", std::move(attrs), {}, {}};
  const ConvAttrs conv(call);
  const Dims y = conv.output_dims(x, w[0]);
  call.inputs = {{.name = "x", .dtype = DType::f32, .shape = Shape::of(x)},
                 {.name = "w", .dtype = DType::f32, .shape = Shape::of(w)}};
  if (conv.has_bias) call.inputs.push_back({.name = "bias", .dtype = DType::f32, .shape = Shape::of({w[0]})});
  if (conv.has_slopes) call.inputs.push_back({.name = "slope", .dtype = DType::f32, .shape = Shape::of({w[0]})});
  if (conv.has_pre) {
    for (const char* name : {"pre_scale", "pre_shift"})
      call.inputs.push_back({.name = name, .dtype = DType::f32, .shape = Shape::of({w[1] * conv.group})});
  }
  if (conv.residual != Residual::none)
    call.inputs.push_back({.name = "residual", .dtype = DType::f32, .shape = Shape::of(y)});
  call.outputs = {{.name = "y", .dtype = DType::f32, .shape = Shape::of(y)}};
  return call;
}

}  // namespace modelflow::ops
