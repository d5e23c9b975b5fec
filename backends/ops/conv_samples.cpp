// Sample calls of Conv: layers of real models, then every option once.
#include "backends/ops/activation_body.h"
#include "backends/ops/conv_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {

namespace {

struct Sample {
  Dims x, w;
  Attrs attrs = {};
};

const Attrs kLast = {{"x_layout", "NHWC"}, {"y_layout", "NHWC"}};
const Attrs kBias = {{"has_bias", std::int64_t{1}}};
const Attrs kSame3 = {{"pads", Ints{1, 1, 1, 1}}};
const Attrs kSame5 = {{"pads", Ints{2, 2, 2, 2}}};
const Attrs kHalf = {{"strides", Ints{2, 2}}};

Attrs grouped(std::int64_t group) { return {{"group", group}}; }

Attrs mobile(const Attrs& more, std::string_view activation = "None") {
  return with(with(with(kLast, kBias), more), activation_sample(activation));
}

// Layers of MobileNetV3, PP-OCR and ResNet-50 first, then every option once on something small.
std::vector<Sample> samples() {
  std::vector<Sample> all = {
      {{1, 56, 56, 24}, {72, 24, 1, 1}, mobile({}, "HardSwish")},
      {{2, 1, 1, 120}, {32, 120, 1, 1}, mobile({}, "Relu")},
      {{1, 14, 14, 112}, {672, 112, 1, 1}, mobile({}, "SiLU")},
      {{1, 28, 28, 120}, {40, 120, 1, 1}, with(mobile({}), {{"residual", "before"}})},
      {{1, 28, 28, 120}, {120, 1, 5, 5}, mobile(with(kSame5, grouped(120)), "HardSwish")},
      {{1, 56, 56, 72}, {72, 1, 3, 3}, mobile(with(with(kSame3, kHalf), grouped(72)), "Relu")},
      {{1, 3, 64, 64}, {16, 3, 3, 3}, with(mobile(with(kSame3, kHalf), "HardSwish"), {{"x_layout", "NCHW"}})},
      {{1, 20, 20, 96}, {24, 96, 3, 3}, with(kLast, kSame3)},
      {{1, 28, 28, 64}, {64, 64, 3, 3}, mobile(kSame3, "Relu")},
      {{1, 28, 28, 64}, {128, 64, 1, 1}, mobile(kHalf)},
      {{1, 1, 40, 60}, {120, 60, 1, 1}, mobile({}, "SiLU")},
      {{1, 1, 40, 48}, {60, 48, 1, 3}, mobile({{"pads", Ints{0, 1, 0, 1}}}, "SiLU")},
      {{2, 5, 9, 7}, {6, 5, 3, 2}, {{"pads", Ints{1, 0, 2, 1}}, {"dilations", Ints{1, 2}}}},
      {{2, 17, 9, 7}, {17, 1, 3, 3}, with(kSame3, grouped(17))},
      {{2, 9, 7, 17}, {17, 1, 3, 3}, mobile({{"group", std::int64_t{17}}, {"dilations", Ints{2, 2}}})},
      {{1, 12, 8, 8}, {8, 3, 3, 3}, with(kSame3, grouped(4))},
      {{1, 4, 8, 8}, {8, 1, 3, 3}, with(kSame3, grouped(4))},
      {{2, 5, 33}, {7, 5, 4}, {{"pads", Ints{1, 2}}, {"strides", Ints{3}}}},
      {{1, 4, 5, 6, 7}, {5, 4, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1, 1, 1}}, {"strides", Ints{1, 2, 1}}}},
      {{0, 6, 6, 8}, {8, 8, 3, 3}, mobile(kSame3)},
  };
  const Attrs affine = {{"post_scale", 1.5f}, {"post_shift", -0.25f}};
  all.push_back({{1, 6, 7, 20}, {20, 1, 3, 3}, with(mobile(with(kSame3, grouped(20)), "HardSwish"), affine)});
  all.push_back({{1, 6, 7, 20}, {19, 20, 1, 1}, with(with(mobile({}, "Relu"), affine), {{"residual", "after"}})});
  all.push_back({{1, 9, 6, 7}, {18, 9, 3, 3}, with(with(kSame3, activation_sample("SiLU")), affine)});
  // Large enough for minimal filtering; extents that its tiles do not divide.
  all.push_back({{1, 33, 31, 64}, {64, 64, 3, 3}, with(mobile(kSame3, "Relu"), {{"residual", "before"}})});
  all.push_back({{1, 50, 49, 70}, {90, 70, 3, 3}, with(mobile(kSame3, "Gelu"), {{"residual", "after"}})});
  all.push_back({{2, 14, 14, 256}, {256, 256, 3, 3}, mobile(kSame3, "SiLU")});
  all.push_back({{1, 19, 17, 512}, {512, 512, 3, 3}, mobile({}, "HardSwish")});
  const Attrs pre = {{"pre_activation", "Relu"}};  // DenseNet
  all.push_back({{1, 28, 28, 320}, {128, 320, 1, 1}, with(mobile({}, "Relu"), pre)});
  all.push_back({{2, 9, 7, 19}, {20, 19, 1, 1}, with(with(mobile(kHalf), pre), {{"residual", "before"}})});
  all.push_back({{1, 9, 7, 40}, {72, 40, 1, 1}, with(mobile({}, "Relu"), pre)});
  const Attrs bent = {{"activation", "PRelu"}};
  all.push_back({{1, 56, 56, 64}, {64, 64, 3, 3}, with(mobile(kSame3), bent)});
  all.push_back({{1, 9, 7, 40}, {72, 40, 1, 1}, with(with(mobile({}), bent), {{"residual", "before"}})});
  all.push_back({{1, 9, 7, 40}, {40, 1, 3, 3}, with(mobile(with(kSame3, grouped(40))), bent)});
  all.push_back({{1, 9, 6, 7}, {18, 9, 3, 3}, with(with(kSame3, bent), affine)});
  // Gates (StarNet, large kernels): another layer's result is the factor.
  const Attrs times = {{"residual", "times"}};
  all.push_back({{1, 28, 28, 48}, {192, 48, 1, 1}, mobile(times)});
  all.push_back({{1, 28, 28, 64}, {64, 1, 7, 7}, mobile(with({{"pads", Ints{3, 3, 3, 3}}}, with(grouped(64), times)))});
  all.push_back({{1, 6, 7, 20}, {20, 1, 3, 3}, mobile(with(with(kSame3, grouped(20)), times), "SiLU")});
  all.push_back({{1, 33, 31, 64}, {64, 64, 3, 3}, mobile(with(kSame3, times), "Sigmoid")});
  all.push_back({{2, 9, 6, 7}, {18, 9, 3, 3}, with(with(kSame3, bent), with(affine, times))});
  all.push_back({{1, 12, 8, 8}, {8, 3, 3, 3}, with(with(kSame3, grouped(4)), with(activation_sample("Relu"), times))});
  for (const std::string& activation : activation_names()) {
    all.push_back({{1, 6, 7, 20}, {19, 20, 1, 1}, with(mobile({}, activation), {{"residual", "after"}})});
    all.push_back({{1, 6, 7, 20}, {20, 1, 3, 3}, mobile(with(kSame3, grouped(20)), activation)});
    all.push_back({{1, 9, 6, 7}, {18, 9, 3, 3}, with(kSame3, activation_sample(activation))});
  }
  return all;
}

std::vector<Sample> volumes() {
  const Attrs same = {{"pads", Ints{1, 1, 1, 1, 1, 1}}}, causal = {{"pads", Ints{2, 1, 1, 0, 1, 1}}};
  return {
      {{2, 4, 6, 7, 16}, {24, 16, 3, 3, 3}, with(mobile(causal, "Relu"), {{"residual", "before"}})},
      {{1, 5, 7, 6, 7}, {9, 7, 3, 3, 3}, mobile(with(same, {{"strides", Ints{2, 2, 1}}}))},
      {{1, 5, 6, 7, 20}, {20, 1, 3, 3, 3}, mobile(with(same, grouped(20)), "HardSwish")},
      {{2, 7, 5, 6, 24}, {16, 24, 3, 1, 1}, mobile({{"dilations", Ints{2, 1, 1}}}, "SiLU")},
      {{1, 3, 4, 5, 24}, {40, 24, 1, 1, 1}, mobile({}, "Relu")},
      {{1, 6, 3, 5, 4}, {4, 3, 1, 3, 3}, with(with(kBias, grouped(2)), {{"pads", Ints{0, 1, 1, 0, 1, 1}}})},
      {{0, 4, 4, 4, 8}, {8, 8, 3, 3, 3}, mobile(same)},
  };
}

}  // namespace

std::vector<Call> conv_samples() {
  static const Samples made = [] {
    Samples all;
    std::vector<Sample> chosen = samples(), deep = volumes();
    chosen.insert(chosen.end(), deep.begin(), deep.end());
    for (Sample& sample : chosen) {
      Call call = conv_call(sample.x, sample.w, sample.attrs);
      for (std::size_t i = 1; i < ConvAttrs(call).residual_index(); ++i) {
        const Dims dims = call.inputs[i].shape.values();
        const std::int64_t depth = i == 1 ? element_count(dims) / dims[0] : 9;
        call.inputs[i].constant = &all.weights.emplace_back(sample_weights(dims, depth));
      }
      all.calls.push_back(std::move(call));
    }
    return all;
  }();
  return made.calls;
}

}  // namespace modelflow::ops
