// MatMulBf16 and MatMulToBf16 on any CPU: MatMul in float32.
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/low_precision_problem.h"
#include "backends/cpu/gemm/widened.h"

namespace modelflow::cpu {
namespace {

Verdict accepts_product(const Call& call, const Target& target) {
  if (Verdict v = accepts_matmul_bf16(call, target); !v) return v;
  const Tensor* b = call.in(1).constant;
  if (!b || b->elements() == 0) return no("is not constant, or empty", call.in(1).name);
  return matmul_avx2.accepts(float_form(call), target);
}

}  // namespace

const Kernel matmul_bf16_widened = {
    .op = "MatMulBf16",
    .name = "cpu.matmul_bf16_widened",
    .needs = Isa::avx2,
    .accepts = accepts_product,
    .cost = widened_cost,
    .create = create_widened,
};

const Kernel matmul_to_bf16_widened = {
    .op = "MatMulToBf16",
    .name = "cpu.matmul_to_bf16_widened",
    .needs = Isa::avx2,
    .accepts = accepts_product,
    .cost = widened_cost,
    .create = create_widened,
};

}  // namespace modelflow::cpu
