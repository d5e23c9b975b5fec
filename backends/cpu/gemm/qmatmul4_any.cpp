// QMatMul4 in plain C++: exact, not fast.
#include <algorithm>

#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/low_precision_problem.h"

namespace modelflow::cpu {
namespace {

using ops::QMatMul4Attrs;

/// One row of a: its steps, and what one is worth in each block.
struct Row {
  std::int32_t* steps;
  float* units;
};

void quantize(const float* a, std::size_t blocks, std::size_t block, const Row& row) {
  for (std::size_t i = 0; i < blocks; ++i, a += block) {
    float range = 1e-30f;
    for (std::size_t j = 0; j < block; ++j) range = larger_size(range, a[j]);
    const float inverse = 127 / range;
    row.units[i] = step_size(range);
    for (std::size_t j = 0; j < block; ++j) row.steps[i * block + j] = whole_step(a[j] * inverse);
  }
}

float product(const QMatMul4Problem& p, std::size_t block, const Row& row, std::size_t column) {
  float sum = 0;
  const std::uint8_t* b = p.b + column * p.k / 2;
  const std::int32_t* steps = row.steps;
  for (std::size_t i = 0; i < p.blocks; ++i, steps += block, b += block / 2) {
    std::int32_t dot = 0, total = 0;
    for (std::size_t j = 0; j < block; j += 2) {
      dot += steps[j] * (b[j / 2] & 15) + steps[j + 1] * (b[j / 2] >> 4);
      total += steps[j] + steps[j + 1];
    }
    const std::size_t at = column * p.blocks + i;
    const float zero = p.b_zero ? p.b_zero[at] : 8;
    sum += (static_cast<float>(dot) - zero * static_cast<float>(total)) * row.units[i] * p.b_scale[at];
  }
  return sum;
}

class QMatMul4Any : public Implementation {
 public:
  explicit QMatMul4Any(const Call& call) : attrs_(call), activation_(activation_of(call)) {}

  void run(Invocation& call) const override {
    const QMatMul4Problem p(attrs_, call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.m == 0 || p.n == 0) return;
    const ProductEpilogue out{y, p.n, p.bias, p.residual, attrs_.residual, activation_};
    const std::size_t tasks = std::min(p.m, call.threads() * 4);
    auto* steps = reinterpret_cast<std::int32_t*>(call.scratch(tasks * p.k * sizeof(std::int32_t)));
    auto* units = reinterpret_cast<float*>(call.scratch(tasks * p.blocks * sizeof(float)));
    call.parallel(tasks, [&](std::size_t task) {
      const Row row{steps + task * p.k, units + task * p.blocks};
      for (std::size_t r = p.m * task / tasks; r < p.m * (task + 1) / tasks; ++r) {
        quantize(p.a + r * p.k, p.blocks, attrs_.block, row);
        for (std::size_t j = 0; j < p.n; ++j) y[r * p.n + j] = product(p, attrs_.block, row, j);
        finish_row(out, r);
      }
    });
  }

 private:
  QMatMul4Attrs attrs_;
  ActivationSpec activation_;
};

double cost(const Call& call, const Target& target) {
  const ProductWork work = qmatmul4_work(call);
  return target.compute(work.steps, 0.03) + target.compute(work.epilogue, 0.1);
}

}  // namespace

const Kernel qmatmul4_any = {
    .op = "QMatMul4",
    .name = "cpu.qmatmul4_any",
    .needs = Isa::avx2,
    .accepts = accepts_qmatmul4,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<QMatMul4Any>(call);
    },
};

}  // namespace modelflow::cpu
