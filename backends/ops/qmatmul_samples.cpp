// Sample calls of QMatMul: layers of real models, then every option once.
#include <algorithm>

#include "backends/ops/activation_body.h"
#include "backends/ops/qmatmul_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

struct Sample {
  Dims a, b;
  Attrs attrs = {};
};

// Layers of BERT and ViT first, then every option once on something small.
std::vector<Sample> layers() {
  const Attrs bias = {{"has_bias", std::int64_t{1}}}, trans = {{"trans_b", std::int64_t{1}}};
  const Attrs before = {{"residual", "before"}}, after = {{"residual", "after"}}, times = {{"residual", "times"}};
  const Attrs zero = {{"has_zero_point", std::int64_t{1}}}, tensor = {{"a_per_tensor", std::int64_t{1}}};
  const Attrs known = {{"a_scale", 0.02f}, {"a_zero_point", std::int64_t{117}}};
  std::vector<Sample> all = {
      {{1, 128, 768}, {768, 768}, with(bias, before)},
      {{1, 128, 768}, {768, 3072}, with(bias, activation_sample("Gelu"))},
      {{1, 197, 3072}, {3072, 768}, with(with(bias, before), known)},
      {{8, 312}, {1000, 312}, with(bias, trans)},
      {{1, 1024}, {1024, 1000}, bias},
      {{2, 300}, {300, 6625}, with(bias, known)},
      {{2, 600, 72}, {72, 40}, with(with(activation_sample("Relu"), after), known)},
      {{1, 300, 130}, {130, 33}, bias},
      {{5, 70}, {65, 70}, trans},
      {{13, 1}, {1, 45}},
      {{0, 7, 64}, {64, 48}, bias},
      {{2, 7, 64}, {64, 0}},
      {{1, 128, 384}, {384, 1536}, with(with(bias, activation_sample("Gelu")), tensor)},
      {{3, 5, 70}, {65, 70}, with(with(trans, before), tensor)},
      {{0, 7, 64}, {64, 48}, tensor},
      {{2, 64, 129}, {129, 300}, with(with(bias, zero), tensor)},
      {{5, 70}, {65, 70}, with(with(trans, zero), activation_sample("Relu"))},
      {{2, 40}, {40, 31}, with(with(zero, after), known)},
      {{3, 4, 5, 129}, {129, 31}, with(bias, after)},
      {{2, 9, 64}, {64, 45}, with(activation_sample("SiLU"), times)},
      {{2, 9, 64}, {64, 45}, times},
      {{1, 70}, {70, 33}, with(with(bias, times), known)},
      {{3, 11, 40}, {40, 70}, with(with(zero, times), tensor)},
  };
  for (const std::string& activation : activation_names())
    all.push_back({{3, 11, 40}, {40, 50}, with(with(bias, activation_sample(activation)), before)});
  const Attrs affine = {{"post_scale", 1.5f}, {"post_shift", -0.25f}};
  all.push_back({{5, 20}, {20, 37}, with(with(activation_sample("HardSwish"), affine), known)});
  return all;
}

/// Whole numbers of 8 bits.
Tensor zero_points(std::int64_t n) {
  const Tensor steps = sample_steps({n});
  return Tensor::make(DType::f32, {n}, [&](std::byte* bytes) {
    std::ranges::copy(steps.as<std::int8_t>(), reinterpret_cast<float*>(bytes));
  });
}

Call call_of(Samples& made, const Sample& sample) {
  Call call{"QMatMul", with(find_fused_op("QMatMul")->defaults, sample.attrs), {}, {}};
  const QMatMulAttrs matmul(call);
  const std::int64_t n = sample.b[1 - matmul.trans_b], k = sample.b[matmul.trans_b];
  Dims y = sample.a;
  y.back() = n;
  call.outputs = {{"y", DType::f32, Shape::of(y)}};
  call.inputs.push_back(made.operand("a", sample.a));
  call.inputs.push_back({"b", DType::i8, Shape::of(sample.b), &made.weights.emplace_back(sample_steps(sample.b))});
  // 5000 is about the mean square of the steps: products of every depth end near one.
  call.inputs.push_back(made.operand("b_scale", {n}, 5000 * k));
  if (matmul.has_zero_point) {
    call.inputs.push_back({"b_zero_point", DType::f32, Shape::of({n})});
    call.inputs.back().constant = &made.weights.emplace_back(zero_points(n));
  }
  if (matmul.has_bias) call.inputs.push_back(made.operand("bias", {n}, 9));
  if (matmul.has_residual()) call.inputs.push_back(made.operand("residual", y));
  return call;
}

}  // namespace

std::vector<Call> qmatmul_samples() {
  static const Samples made = [] {
    Samples samples;
    for (const Sample& sample : layers()) samples.calls.push_back(call_of(samples, sample));
    return samples;
  }();
  return made.calls;
}

}  // namespace modelflow::ops
