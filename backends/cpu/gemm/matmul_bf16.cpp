// The kernel of MatMulBf16 on AVX-512 without instructions for bfloat16: weights take half of the memory.
#include <algorithm>

#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/bf16_avx512.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/low_precision_problem.h"
#include "backends/cpu/gemm/split.h"
#include "backends/cpu/loops/bf16.h"
#include "backends/cpu/loops/vector_code.h"

namespace modelflow::cpu {
namespace {

using ops::MatMulBf16Attrs;

/// From here on a product is bound by arithmetic more than by reading its weights.
constexpr std::size_t kManyRows = 17;

class MatMulBf16Avx512 : public Implementation {
 public:
  MatMulBf16Avx512(const Call& call, const Target& target)
      : attrs_(call),
        activation_(activation_of(call)),
        code_(vector_code(target)),
        near_(near_bytes(target, 400 << 10)) {
    const Tensor& b = *call.in(1).constant;
    const auto k = static_cast<std::size_t>(b.dims()[attrs_.trans_b]);
    const auto n = static_cast<std::size_t>(b.dims()[1 - attrs_.trans_b]);
    const std::string layout = std::string("gemm_bf16") + (attrs_.trans_b ? " transposed" : "");
    packed_ = packed_weights(b, layout, packed_bf16_count(k, n) * sizeof(std::uint16_t), [&](std::byte* out) {
      pack_b_bf16(reinterpret_cast<const std::uint16_t*>(b.data()), attrs_.trans_b, k, n,
                  reinterpret_cast<std::uint16_t*>(out));
    });
  }

  void run(Invocation& call) const override {
    const MatMulBf16Problem p(attrs_, call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.m == 0 || p.n == 0) return;
    const float* a = attrs_.round_a ? rounded_to_bf16(code_, p.a, call) : static_cast<const float*>(p.a.data);
    const Bf16Gemm g{p.n, p.k, a, p.k, weights(), {y, p.n, p.bias, p.residual, attrs_.residual, activation_}, near_};
    const double bytes = 2.0 * static_cast<double>(p.n) * static_cast<double>(p.k);
    // Few rows count as one: what is waited for is the weights, and each of them is to be read by one core only.
    const ProductSplit s = split_product({p.m < kManyRows ? 1 : p.m, p.n, p.k, kBf16Panel, bytes}, call.threads());
    const auto task = [&](std::size_t i) {
      const std::size_t row = i / s.panels, column = i % s.panels, all = (p.n + kBf16Panel - 1) / kBf16Panel;
      const std::size_t n0 = all * column / s.panels * kBf16Panel, n1 = all * (column + 1) / s.panels * kBf16Panel;
      gemm_bf16_avx512(g, p.m * row / s.rows, p.m * (row + 1) / s.rows, n0, std::min(n1, p.n));
    };
    if (s.tasks() == 1) return task(0);
    call.parallel(s.tasks(), task);
  }

 private:
  const std::uint16_t* weights() const { return reinterpret_cast<const std::uint16_t*>(packed_.get()); }

  MatMulBf16Attrs attrs_;
  ActivationSpec activation_;
  const VectorCode& code_;
  std::size_t near_;
  std::shared_ptr<const std::byte> packed_;
};

Verdict accepts(const Call& call, const Target& target) {
  if (Verdict v = accepts_matmul_bf16(call, target); !v) return v;
  const Tensor* b = call.in(1).constant;
  if (!b) return no("is not constant", call.in(1).name);
  return b->elements() > 0 ? yes() : no("is empty", call.in(1).name);
}

double cost(const Call& call, const Target& target) {
  const ProductWork work = matmul_bf16_work(call);
  return std::max(target.compute(work.steps + work.epilogue, 0.8), target.stream(work.bytes));
}

}  // namespace

const Kernel matmul_bf16_avx512 = {
    .op = "MatMulBf16",
    .name = "cpu.matmul_bf16_avx512",
    .needs = Isa::avx512,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<MatMulBf16Avx512>(call, target);
    },
};

}  // namespace modelflow::cpu
