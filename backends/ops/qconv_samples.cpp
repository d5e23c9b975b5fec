// Sample calls of QConv: those of Conv in 8 bits, and some more.
#include <cmath>
#include <list>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/qconv_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

// Random numbers of one type that are the same on every machine, -1 to 1 times `factor` per filter.
template <class T, class Factor>
Tensor constant(const Dims& dims, Factor factor) {
  const std::int64_t per_filter = element_count(dims) / dims[0];
  return Tensor::make(dtype_of<T>, dims, [&](std::byte* bytes) {
    std::uint32_t state = 362436069u + static_cast<std::uint32_t>(element_count(dims));
    for (std::int64_t i = 0; i < element_count(dims); ++i) {
      state = state * 1664525u + 1013904223u;
      const float value = static_cast<float>(state >> 8) / 8388608.0f - 1;
      reinterpret_cast<T*>(bytes)[i] = static_cast<T>(value * factor(i / per_filter));
    }
  });
}

// Scales of the weights that keep results near one and differ from filter to filter.
Tensor weight_scales(const Dims& w) {
  const double depth = static_cast<double>(element_count(w) / w[0]);
  const auto base = static_cast<float>(1.5 / std::sqrt(depth) / 127);
  return Tensor::make(DType::f32, {w[0]}, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < w[0]; ++i)
      reinterpret_cast<float*>(bytes)[i] = base * (0.6f + 0.1f * static_cast<float>(i % 9));
  });
}

// The same convolution on 8-bit numbers. `variant` chooses zero points: in the middle, at the end, none.
Call quantized(const Call& conv, std::size_t variant, std::list<Tensor>& constants) {
  constexpr std::int64_t kZeros[3][3] = {{128, 110, 130}, {0, 0, 100}, {77, 128, 255}};
  const std::int64_t* zeros = kZeros[variant % 3];
  const std::string activation = CallAttrs(conv).text("activation");
  const bool bounded = activation == "Sigmoid" || activation == "HardSigmoid" || activation == "Tanh";
  Call call;
  call.op = "QConv";
  call.attrs = conv.attrs;
  call.attrs.erase("has_bias");
  // Scales without a simple ratio: results halfway between two steps are rare, as they are in calibrated models.
  constexpr float kX = 0.0203f, kResidual = 0.02371f;
  call.attrs.set("x_scale", kX).set("x_zero_point", zeros[0]);
  call.attrs.set("y_scale", bounded ? 0.00783f : 0.0307f).set("y_zero_point", zeros[1]);
  call.attrs.set("residual_scale", kResidual).set("residual_zero_point", zeros[2]);
  const Dims w = conv.in(1).shape.values();
  const Tensor& scale = constants.emplace_back(weight_scales(w));
  const Tensor& weights = constants.emplace_back(constant<std::int8_t>(w, [](std::int64_t) { return 127.9f; }));
  const float* scales = scale.as<float>().data();
  const Tensor& bias = constants.emplace_back(
      constant<std::int32_t>({w[0]}, [=](std::int64_t filter) { return 0.5f / (kX * scales[filter]); }));
  call.inputs = {{"x", DType::u8, conv.in(0).shape},
                 constant_operand("w", weights),
                 constant_operand("w_scale", scale),
                 constant_operand("bias", bias)};
  if (ConvAttrs(conv).residual != Residual::none) call.inputs.push_back({"residual", DType::u8, conv.outputs[0].shape});
  call.outputs = {{"y", DType::u8, conv.outputs[0].shape}};
  return call;
}

// What 8 bits add to the samples of Conv: more first layers, blocks of channels that four and sixteen do not divide.
std::vector<Call> more() {
  const Attrs last = {{"x_layout", "NHWC"}, {"y_layout", "NHWC"}}, to_last = {{"y_layout", "NHWC"}};
  const Attrs half = {{"strides", Ints{2, 2}}}, same3 = {{"pads", Ints{1, 1, 1, 1}}};
  const Attrs before = {{"residual", "before"}}, after = {{"residual", "after"}};
  const auto grouped = [](std::int64_t group) { return Attrs{{"group", group}}; };
  const auto active = [](const char* name, const Attrs& attrs) { return with(attrs, activation_sample(name)); };
  const Attrs first7 = with(half, {{"pads", Ints{3, 3, 3, 3}}}), first3 = with(half, {{"pads", Ints{0, 0, 1, 1}}});
  return {
      conv_call({1, 3, 61, 70}, {64, 3, 7, 7}, active("Relu", with(to_last, first7))),
      conv_call({1, 61, 70, 3}, {64, 3, 7, 7}, active("Clip", with(last, first7))),
      conv_call({2, 3, 33, 38}, {32, 3, 3, 3}, active("SiLU", with(to_last, first3))),
      conv_call({1, 1, 29, 38}, {40, 1, 3, 3}, active("HardSwish", with(to_last, same3))),
      conv_call({2, 64, 9, 10}, {72, 64, 1, 1}, with(to_last, before)),
      conv_call({2, 9, 10, 64}, {72, 64, 1, 1}, {{"x_layout", "NHWC"}, {"residual", "after"}}),
      conv_call({1, 14, 14, 128}, {256, 128, 1, 1}, active("Relu", with(last, before))),
      conv_call({2, 15, 13, 128}, {256, 128, 1, 1}, active("LeakyRelu", with(with(last, half), after))),
      conv_call({2, 13, 9, 64}, {96, 64, 3, 3}, active("Relu", with(with(last, half), same3))),
      conv_call({1, 13, 9, 40}, {24, 40, 3, 3}, with(with(last, {{"dilations", Ints{2, 3}}}), same3)),
      conv_call({1, 8, 8, 64}, {128, 16, 3, 3}, active("Relu", with(with(last, same3), grouped(4)))),
      conv_call({1, 8, 8, 36}, {18, 6, 3, 3}, with(with(last, same3), grouped(6))),
      conv_call({1, 15, 14, 72}, {72, 1, 3, 3}, active("Clip", with(with(last, same3), grouped(72)))),
      conv_call({1, 15, 14, 120}, {120, 1, 5, 5},
                with(with(last, half), with(grouped(120), {{"pads", Ints{1, 2, 2, 1}}}))),
      conv_call({2, 33, 40}, {48, 40, 3}, with(last, {{"pads", Ints{1, 1}}})),
      conv_call({0, 33, 40}, {48, 40, 3}, last),
  };
}

}  // namespace

std::vector<Call> qconv_samples() {
  static const auto made = [] {
    std::pair<std::vector<Call>, std::list<Tensor>> result;  // the list keeps what the calls point to
    for (const auto& calls : {more(), conv_samples()}) {
      for (const Call& conv : calls)
        if (const ConvAttrs attrs(conv); !attrs.has_slopes && !attrs.has_pre && attrs.residual != Residual::times)
          result.first.push_back(quantized(conv, result.first.size(), result.second));
    }
    return result;
  }();
  return made.first;
}

}  // namespace modelflow::ops
