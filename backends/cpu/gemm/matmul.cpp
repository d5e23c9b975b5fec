// The kernels of MatMul in float32 on AVX-512 and AVX2.
#include <algorithm>

#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/f32_product.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/matmul_problem.h"

namespace modelflow::cpu {
namespace {

using ops::MatMulAttrs;

class MatMul : public Implementation {
 public:
  MatMul(const Call& call, const Target& target, const F32Code& code)
      : attrs_(call),
        activation_(activation_of(call)),
        product_(code, target),
        packed_(packed_matrix(call, attrs_.trans_b, code)) {}

  void run(Invocation& call) const override {
    const MatMulProblem p(attrs_, call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.batch == 0 || p.m == 0 || p.n == 0) return;
    std::vector<Gemm> products(p.batch, common(p));
    for (std::size_t i = 0; i < p.batch; ++i) place(p, i, y, products[i]);
    if (packed_ && !attrs_.trans_a) return product_.multiply(products, call);
    run_dynamic(p, products, call);
  }

 private:
  Gemm common(const MatMulProblem& p) const {
    Gemm g;
    g.m = p.m;
    g.n = p.n;
    g.k = p.k;
    g.lda = p.k;
    g.ldb = p.n;
    g.panel = product_.code.panel;
    g.ldc = g.ldr = p.n;
    g.scale = attrs_.scale;
    g.bias = p.bias;
    g.row_bias = p.row_bias;
    if (p.residual) g.residual_use = attrs_.residual;
    g.activation = activation_;
    g.blocks = product_.blocks;
    return g;
  }

  void place(const MatMulProblem& p, std::size_t i, float* y, Gemm& g) const {
    g.a = p.a + p.offsets[i].first;
    g.b = p.b + p.offsets[i].second;
    g.c = y + i * p.m * p.n;
    if (p.residual) g.residual = p.residual + i * p.m * p.n;
    if (packed_) {
      g.b = reinterpret_cast<const float*>(packed_.get());
      product_.reads_packed(g);
    }
  }

  // B (and a transposed A) are packed first: by the task that uses them when there are enough products, else together.
  void run_dynamic(const MatMulProblem& p, std::vector<Gemm>& products, Invocation& call) const {
    const F32Code& code = product_.code;
    const bool pack = !packed_ && (attrs_.trans_b || (p.m > 24 && p.n > 128));
    if (!pack && !attrs_.trans_a) return product_.multiply(products, call);
    const std::size_t b_floats = pack ? code.packed_floats(p.k, p.n) : 0;
    const std::size_t a_floats = attrs_.trans_a ? (p.m * p.k + 15) / 16 * 16 : 0;
    // Enough products: each task packs and multiplies some, one after the other in the same memory.
    const bool together = p.batch >= call.threads();
    const std::size_t tasks = together ? std::min(p.batch, call.threads() * 3) : p.batch;
    auto* memory = reinterpret_cast<float*>(call.scratch(tasks * (a_floats + b_floats) * sizeof(float) + 64));
    const auto prepare = [&](std::size_t i, float* a, std::size_t first, std::size_t last) {
      if (pack) {
        code.pack_b(p.b + p.offsets[i].second, attrs_.trans_b ? p.k : p.n, attrs_.trans_b, p.k, p.n, first, last,
                    a + a_floats);
      }
      if (attrs_.trans_a && first == 0) code.transpose(p.a + p.offsets[i].first, p.m, a, p.k, p.k, p.m);
    };
    const auto use = [&](std::size_t i, const float* a) {
      Gemm& g = products[i];
      if (attrs_.trans_a) g.a = a;
      if (!pack) return;
      g.b = a + a_floats;
      product_.reads_packed(g);
    };
    if (together) {
      return call.parallel(tasks, [&](std::size_t task) {
        float* own = memory + task * (a_floats + b_floats);
        for (std::size_t i = p.batch * task / tasks; i < p.batch * (task + 1) / tasks; ++i) {
          prepare(i, own, 0, code.panels(p.n));
          use(i, own);
          code.gemm(products[i], 0, p.m, 0, p.n, nullptr);
        }
      });
    }
    const auto place_of = [&](std::size_t i) { return memory + i * (a_floats + b_floats); };
    const std::size_t parts = std::max<std::size_t>(std::min(code.panels(p.n), call.threads() * 2), 1);
    call.parallel(p.batch * parts, [&](std::size_t task) {
      const std::size_t i = task / parts, part = task % parts;
      prepare(i, place_of(i), code.panels(p.n) * part / parts, code.panels(p.n) * (part + 1) / parts);
    });
    for (std::size_t i = 0; i < p.batch; ++i) use(i, place_of(i));
    product_.multiply(products, call);
  }

  MatMulAttrs attrs_;
  ActivationSpec activation_;
  F32Product product_;
  std::shared_ptr<const std::byte> packed_;
};

double cost(const Call& call, const Target& target) {
  // B that comes at run time is packed (or read in place) at every run: measured 0.90 to 1.0 of ONNX Runtime's speed.
  const double share = call.in(1).constant ? 0.85 : 0.65;
  return std::max(target.compute(matmul_flops(call), share), target.stream(matmul_bytes(call)));
}

}  // namespace

std::shared_ptr<const std::byte> packed_matrix(const Call& call, bool trans_b, const F32Code& code) {
  const Tensor* b = call.in(1).constant;
  if (!b || b->rank() < 2 || b->elements() == 0) return nullptr;
  const std::size_t rank = b->rank();
  const auto k = static_cast<std::size_t>(b->dims()[rank - 2 + trans_b]);
  const auto n = static_cast<std::size_t>(b->dims()[rank - 1 - trans_b]);
  if (k * n != static_cast<std::size_t>(b->elements())) return nullptr;  // one matrix per batch: packed at every run
  return packed_matrix(*b, k, n, trans_b, code);
}

const Kernel matmul_avx512 = {
    .op = "MatMul",
    .name = "cpu.matmul_avx512",
    .needs = Isa::avx512,
    .accepts = accepts_matmul,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<MatMul>(call, target, f32_avx512);
    },
};

const Kernel matmul_avx2 = {
    .op = "MatMul",
    .name = "cpu.matmul_avx2",
    .needs = Isa::avx2,
    .accepts = accepts_matmul,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<MatMul>(call, target, f32_avx2);
    },
};

}  // namespace modelflow::cpu
