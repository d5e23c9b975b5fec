// Reads and checks calls of QConvTranspose and QConvTransposeFloat, and estimates their cost.
#include "backends/cpu/qconv/transposed_problem.h"

#include <algorithm>
#include <string>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/typed_input.h"

namespace modelflow::cpu {
namespace {

[[noreturn]] void mismatch(const std::string& what) {
  throw Error(ErrorKind::invalid_input, "QConvTranspose: " + what);
}

template <class T>
const T* tensor(const Invocation& call, std::size_t index, const Dims& dims) {
  return typed_input<T>(call, "QConvTranspose", index, dims);
}

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

QConvTransposeNode::QConvTransposeNode(const Call& call)
    : last(CallAttrs(call).text("layout") == "NHWC"),
      floats(call.op == "QConvTransposeFloat"),
      x(ops::quantization(call, "x")),
      y(floats ? ops::Quantization() : ops::quantization(call, "y")),
      activation(activation_of(call)),
      strides(CallAttrs(call).ints("strides")) {}

QConvTransposeRun::QConvTransposeRun(const QConvTransposeNode& node, Invocation& call) {
  const std::size_t spatial = node.strides.size(), rank = spatial + 2;
  const View from = call.input(0);
  const Dims given(from.dims.begin(), from.dims.end());
  const auto of_w = call.input(1).dims;
  if (spatial < 1 || spatial > 2 || given.size() != rank || of_w.size() != rank)
    mismatch("x is " + Shape::of(given).str() + ", the window has " + std::to_string(spatial) + " axes");
  const std::size_t channel = node.last ? rank - 1 : 1, first = node.last ? 1 : 2;
  Dims weights = {given[channel], of_w[1]};
  weights.insert(weights.end(), node.strides.begin(), node.strides.end());
  x = tensor<std::uint8_t>(call, 0, given);
  w = tensor<std::int8_t>(call, 1, weights);
  w_scale = tensor<float>(call, 2, {weights[1]});
  bias = tensor<std::int32_t>(call, 3, {weights[1]});
  Dims out = given;
  out[channel] = weights[1];
  for (std::size_t i = 0; i < spatial; ++i) out[first + i] *= node.strides[i];
  y = call.output(0, out);
  batch = size(given[0]), channels = size(weights[0]), filters = size(weights[1]);
  height = spatial == 2 ? size(given[first]) : 1, width = size(given[first + spatial - 1]);
  kernel_h = spatial == 2 ? size(node.strides[0]) : 1, kernel_w = size(node.strides[spatial - 1]);
}

Verdict accepts_qconv_transpose(const Call& call, const Target&) {
  constexpr DType kTypes[] = {DType::u8, DType::i8, DType::f32, DType::i32};
  if (call.inputs.size() != std::size(kTypes)) return no("takes x, w, w_scale and bias");
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.in(i).dtype != kTypes[i]) return no("is not " + std::string(name(kTypes[i])), call.in(i).name);
  }
  const std::size_t spatial = CallAttrs(call).ints("strides").size();
  const Shape& w = call.in(1).shape;
  if (spatial < 1 || spatial > 2) return no("not one or two strides");
  return w.known() && w.rank() == spatial + 2 ? yes() : no("is not [C, M, kernel]", call.in(1).name);
}

double qconv_transpose_cost(const Call& call, const Target& target, double share) {
  const Shape &x = call.in(0).shape, &w = call.in(1).shape;
  const double channels = w.rank() && w[0].known() ? static_cast<double>(std::max<std::int64_t>(w[0].value(), 1)) : 1;
  const double pixels = x.known_elements() / channels, products = pixels * w.known_elements();
  const double result = call.op == "QConvTransposeFloat" ? sizeof(float) : 1;
  return 1e-6 + std::max(target.compute(2 * products / 4, share),
                         target.stream(x.known_elements() + result * products / channels));
}

}  // namespace modelflow::cpu
