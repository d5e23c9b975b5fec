// Sample calls of QMatMul4.
#include "backends/ops/activation_body.h"
#include "backends/ops/qmatmul4_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

struct Sample {
  Dims a;
  std::int64_t n;
  Attrs attrs = {};
};

std::vector<Sample> layers() {
  const Attrs bias = {{"has_bias", std::int64_t{1}}}, zero = {{"has_zero_point", std::int64_t{1}}};
  const Attrs before = {{"residual", "before"}}, after = {{"residual", "after"}}, times = {{"residual", "times"}};
  const auto block = [](std::int64_t size) { return Attrs{{"block", size}}; };
  return {
      {{1, 1, 768}, 3072, with(bias, activation_sample("Gelu"))},
      {{1, 32, 384}, 384, with(bias, before)},
      {{1, 96}, 1000, zero},
      {{2, 9, 96}, 50, with(with(bias, zero), after)},
      {{3, 64}, 17, with(with(activation_sample("SiLU"), before), block(16))},
      {{5, 384}, 33, with(zero, block(128))},
      {{2, 9, 64}, 45, with(activation_sample("SiLU"), times)},
      {{2, 9, 64}, 45, with(bias, times)},
      {{7, 64}, 31, with(bias, block(64))},
      {{0, 7, 64}, 48, bias},
      {{1, 150, 32}, 130, with(bias, activation_sample("Relu"))},
  };
}

Tensor zero_points(const Dims& dims) {
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i)
      reinterpret_cast<float*>(bytes)[i] = static_cast<float>(i * 7 % 16);
  });
}

Call call_of(Samples& made, const Sample& sample) {
  Call call{"QMatMul4", with(find_fused_op("QMatMul4")->defaults, sample.attrs), {}, {}};
  const QMatMul4Attrs matmul(call);
  const auto size = static_cast<std::int64_t>(matmul.block);
  const std::int64_t k = sample.a.back(), blocks = k / size;
  Dims y = sample.a;
  y.back() = sample.n;
  const auto constant = [&](const char* name, Tensor tensor) {
    const Tensor& kept = made.weights.emplace_back(std::move(tensor));
    return Operand{name, kept.dtype(), Shape::of(kept.dims()), &kept};
  };
  call.outputs = {{"y", DType::f32, Shape::of(y)}};
  call.inputs.push_back(made.operand("a", sample.a));
  call.inputs.push_back(constant("b", sample_bytes({sample.n, blocks, size / 2})));
  // 20 is about the mean square of the steps: products of every depth end near one.
  call.inputs.push_back(constant("b_scale", sample_weights({sample.n, blocks}, 20 * k)));
  if (matmul.has_zero_point) call.inputs.push_back(constant("b_zero_point", zero_points({sample.n, blocks})));
  if (matmul.has_bias) call.inputs.push_back(made.operand("bias", {sample.n}, 9));
  if (matmul.has_residual()) call.inputs.push_back(made.operand("residual", y));
  return call;
}

}  // namespace

std::vector<Call> qmatmul4_samples() {
  static const Samples made = [] {
    Samples samples;
    for (const Sample& sample : layers()) samples.calls.push_back(call_of(samples, sample));
    return samples;
  }();
  return made.calls;
}

}  // namespace modelflow::ops
