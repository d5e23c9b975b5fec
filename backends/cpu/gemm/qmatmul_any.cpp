// QMatMul in plain C++: exact, not fast. For machines whose 8-bit products would saturate.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/low_precision_problem.h"

namespace modelflow::cpu {
namespace {

using ops::QMatMulAttrs;

/// Steps of a row, relative to the zero point, and the size of one.
float quantize(const QMatMulAttrs& attrs, const TensorSteps& all, const float* a, std::size_t k, std::int32_t* steps) {
  if (attrs.by_row()) {
    float range = 1e-30f;
    for (std::size_t i = 0; i < k; ++i) range = larger_size(range, a[i]);
    const float inverse = 127 / range;
    for (std::size_t i = 0; i < k; ++i) steps[i] = whole_step(a[i] * inverse);
    return step_size(range);
  }
  const auto low = static_cast<float>(-all.zero_point), high = static_cast<float>(255 - all.zero_point);
  for (std::size_t i = 0; i < k; ++i) {
    const float x = a[i] / all.scale;
    steps[i] = static_cast<std::int32_t>(std::nearbyint(x > low ? std::min(x, high) : low));  // NaN is low, and so 0
  }
  return all.scale;
}

void multiply(const QMatMulProblem& p, bool trans_b, const std::int32_t* steps, std::int32_t* sums) {
  if (trans_b) {
    for (std::size_t j = 0; j < p.n; ++j) {
      const std::int8_t* column = p.b + j * p.k;
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < p.k; ++i) sum += steps[i] * column[i];
      sums[j] = sum;
    }
    return;
  }
  std::fill_n(sums, p.n, 0);
  for (std::size_t i = 0; i < p.k; ++i) {
    const std::int8_t* row = p.b + i * p.n;
    for (std::size_t j = 0; j < p.n; ++j) sums[j] += steps[i] * row[j];
  }
}

class QMatMulAny : public Implementation {
 public:
  explicit QMatMulAny(const Call& call) : attrs_(call), activation_(activation_of(call)) {}

  void run(Invocation& call) const override {
    const QMatMulProblem p(attrs_, call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.m == 0 || p.n == 0) return;
    const ProductEpilogue out{y, p.n, p.bias, p.residual, attrs_.residual, activation_};
    TensorSteps all{attrs_.a_scale, attrs_.a_zero_point};
    if (attrs_.per_tensor) {
      Range range;
      for (std::size_t i = 0; i < p.m * p.k; ++i) range.add(p.a[i], p.a[i]);
      all = tensor_steps(range);
    }
    const std::size_t tasks = std::min(p.m, call.threads() * 4);
    auto* memory = reinterpret_cast<std::int32_t*>(call.scratch(tasks * (p.k + p.n) * sizeof(std::int32_t)));
    call.parallel(tasks, [&](std::size_t task) {
      std::int32_t *steps = memory + task * (p.k + p.n), *sums = steps + p.k;
      for (std::size_t r = p.m * task / tasks; r < p.m * (task + 1) / tasks; ++r) {
        const float unit = quantize(attrs_, all, p.a + r * p.k, p.k, steps);
        multiply(p, attrs_.trans_b, steps, sums);
        const std::int32_t total = p.b_zero ? std::accumulate(steps, steps + p.k, 0) : 0;
        for (std::size_t j = 0; p.b_zero && j < p.n; ++j) sums[j] -= total * static_cast<std::int32_t>(p.b_zero[j]);
        for (std::size_t j = 0; j < p.n; ++j) y[r * p.n + j] = static_cast<float>(sums[j]) * unit * p.b_scale[j];
        finish_row(out, r);
      }
    });
  }

 private:
  QMatMulAttrs attrs_;
  ActivationSpec activation_;
};

double cost(const Call& call, const Target& target) {
  const ProductWork work = qmatmul_work(call);
  return target.compute(work.steps, 0.05) + target.compute(work.epilogue, 0.1);
}

}  // namespace

const Kernel qmatmul_any = {
    .op = "QMatMul",
    .name = "cpu.qmatmul_any",
    .needs = Isa::avx2,
    .accepts = accepts_qmatmul,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<QMatMulAny>(call);
    },
};

}  // namespace modelflow::cpu
