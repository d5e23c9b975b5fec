// The fused op QSqueezeExcite: SqueezeExcite of 8-bit numbers.
#include <algorithm>
#include <cmath>

#include "backends/ops/squeeze_excite.h"

namespace modelflow::ops {
namespace {

/// Weights as int8, with a scale per filter behind them.
void in_bytes(Samples& all, Call& call, std::size_t index) {
  Operand& w = call.inputs[index];
  const Dims dims = w.constant->dims();
  w.dtype = DType::i8;
  w.constant = &all.weights.emplace_back(sample_steps(dims));
  const Tensor some = sample_weights({dims[0]}, 4);
  Operand scale{index == 1 ? "w1_scale" : "w2_scale", DType::f32, Shape::of({dims[0]})};
  scale.constant = &all.weights.emplace_back(Tensor::make(DType::f32, {dims[0]}, [&](std::byte* bytes) {
    std::ranges::transform(some.as<float>(), reinterpret_cast<float*>(bytes),
                           [&](float v) { return (1 + std::abs(v)) / 127 / std::sqrt(static_cast<float>(dims[1])); });
  }));
  call.inputs.insert(call.inputs.begin() + static_cast<std::ptrdiff_t>(index) + 1, scale);
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    const auto add = [&all](const ExciteSample& sample, std::int64_t x_zero, std::int64_t y_zero) {
      Call call = excite_sample(all, sample);
      call.op = "QSqueezeExcite";
      call.inputs[0].dtype = call.outputs[0].dtype = DType::u8;
      for (const std::size_t i : {1, 4}) in_bytes(all, call, i);
      call.attrs.set("x_scale", Attr(0.023f)).set("x_zero_point", Attr(x_zero));
      call.attrs.set("y_scale", Attr(0.017f)).set("y_zero_point", Attr(y_zero));
      all.calls.push_back(std::move(call));
    };
    add({{1, 20, 20, 384}, 96, "NHWC", "Relu", "HardSigmoid", 0}, 16, 20);
    add({{1, 60, 60, 24}, 6, "NHWC", "Relu", "HardSigmoid", 1}, 0, 0);
    add({{2, 7, 7, 672}, 28, "NHWC", "SiLU", "Sigmoid", 0}, 128, 111);
    add({{2, 50, 9, 11}, 13, "NCHW", "Relu", "Sigmoid", 1}, 100, 255);
    add({{1, 16, 12, 15}, 4, "NCHW", "Relu", "HardSigmoid", 0}, 7, 5);
    add({{3, 5, 37}, 3, "NHWC", "HardSwish", "HardSigmoid", 0}, 60, 30);
    add({{1, 2, 3, 4, 19}, 5, "NHWC", "Relu", "Sigmoid", 0}, 3, 0);
    add({{0, 4, 4, 8}, 2, "NHWC", "Relu", "Sigmoid", 0}, 0, 0);
    return all;
  }();
  return made.calls;
}

Attrs defaults() {
  Attrs attrs = excite_defaults();
  for (const char* side : {"x_", "y_"})
    attrs.set(std::string(side) + "scale", Attr(1.0f)).set(std::string(side) + "zero_point", Attr(std::int64_t{0}));
  return attrs;
}

}  // namespace

extern const FusedOp qsqueeze_excite_op = {
    .kind = "QSqueezeExcite",
    .doc =
        "Channels of 8-bit numbers weighted by a gate: two 1x1 convolutions of their means, floats by weights in int8.",
    .names = 1,
    .min_inputs = 7,
    .max_inputs = 7,
    .input_types = {DType::u8, DType::i8, DType::f32, DType::f32, DType::i8, DType::f32},
    .body = excite_body,
    .inputs = excite_inputs,
    .attributes = excite_attributes,
    .infer = infer_excite,
    .samples = samples,
    .defaults = defaults(),
    .output_type = DType::u8,
    .family = Family::squeeze_excite,
    .base = "SqueezeExcite",
    .form = Form::i8,
    .layouts = {"layout"},
};

}  // namespace modelflow::ops
