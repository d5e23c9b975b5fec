// The kernels of MatMul in float32 on AVX-512 and AVX2.
#include <algorithm>

#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/f32.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/matmul_problem.h"
#include "backends/cpu/gemm/split.h"

namespace modelflow::cpu {
namespace {

using ops::MatMulAttrs;

/// Products on a machine: its code, and what its caches hold.
struct Machine {
  const F32Code& code;
  GemmBlocks blocks;
  std::size_t small_b;  ///< bytes of B that stay in L2 beside the rest
  Machine(const F32Code& f32, const Target& target)
      : code(f32), blocks(f32.blocks(target)), small_b(near_bytes(target, 256 << 10)) {}

  std::size_t tiles(std::size_t n) const { return (n + code.tile - 1) / code.tile; }

  // Weights are what travels far: every thread gets its own columns, so that each weight is read by one core only. When
  // B fits in L2 beside the rest, rows are cut instead. A few tasks per thread even out noise on busy machines.
  ProductSplit split(const Gemm& g, std::size_t threads) const {
    const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
    if (threads == 1 || flops < 1e6) return {};
    const std::size_t wanted = even_tasks(
        std::min<std::size_t>(threads * 3, std::max<std::size_t>(static_cast<std::size_t>(flops / 5e5), 2)), threads);
    const bool rows_first = g.k * g.n * sizeof(float) <= small_b;
    return cut_product(wanted, rows_first, std::max<std::size_t>(g.m / 12, 1), tiles(g.n));
  }

  void run_part(const Gemm& g, const ProductSplit& s, std::size_t task, std::byte* own) const {
    const std::size_t row = task / s.panels, column = task % s.panels, all = tiles(g.n);
    const std::size_t n0 = all * column / s.panels * code.tile, n1 = all * (column + 1) / s.panels * code.tile;
    code.gemm(g, g.m * row / s.rows, g.m * (row + 1) / s.rows, n0, std::min(n1, g.n), reinterpret_cast<float*>(own));
  }

  /// Memory that each part of a product wants.
  std::size_t own_bytes(const Gemm& g, const ProductSplit& s) const {
    const std::size_t columns = tiles(g.n) / s.panels * code.tile;  // of the smallest part
    return code.packed_a_floats(g, (g.m + s.rows - 1) / s.rows, std::min(columns, g.n)) * sizeof(float);
  }
};

class MatMul : public Implementation {
 public:
  MatMul(const Call& call, const Target& target, const F32Code& code)
      : attrs_(call),
        activation_(activation_of(call)),
        machine_(code, target),
        packed_(packed_matrix(call, attrs_.trans_b, code)) {}

  void run(Invocation& call) const override {
    const MatMulProblem p(attrs_, call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.batch == 0 || p.m == 0 || p.n == 0) return;
    std::vector<Gemm> products(p.batch, common(p));
    for (std::size_t i = 0; i < p.batch; ++i) place(p, i, y, products[i]);
    if (packed_ && !attrs_.trans_a) return multiply(products, call);
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
    g.panel = machine_.code.panel;
    g.ldc = g.ldr = p.n;
    g.scale = attrs_.scale;
    g.bias = p.bias;
    g.row_bias = p.row_bias;
    if (p.residual) g.residual_use = attrs_.residual;
    g.activation = activation_;
    g.blocks = machine_.blocks;
    return g;
  }

  void place(const MatMulProblem& p, std::size_t i, float* y, Gemm& g) const {
    g.a = p.a + p.offsets[i].first;
    g.b = p.b + p.offsets[i].second;
    g.c = y + i * p.m * p.n;
    if (p.residual) g.residual = p.residual + i * p.m * p.n;
    if (packed_) {
      g.b = reinterpret_cast<const float*>(packed_.get());
      packed_b(g);
    }
  }

  void packed_b(Gemm& g) const {
    g.ldb = machine_.code.panel;
    g.panel = machine_.code.panel * g.k;
  }

  void multiply(const std::vector<Gemm>& products, Invocation& call) const {
    const ProductSplit s = machine_.split(products[0], products.size() < call.threads() ? call.threads() : 1);
    const std::size_t parts = s.tasks(), tasks = parts * products.size();
    const auto task = [&](std::size_t i, std::byte* own) { machine_.run_part(products[i / parts], s, i % parts, own); };
    if (const std::size_t bytes = machine_.own_bytes(products[0], s))
      return run_with_scratch(call, static_cast<std::int64_t>(tasks), bytes, task);
    if (tasks == 1) return task(0, nullptr);
    call.parallel(tasks, [&](std::size_t i) { task(i, nullptr); });
  }

  // B (and a transposed A) are packed first: by the task that uses them when there are enough products, else together.
  void run_dynamic(const MatMulProblem& p, std::vector<Gemm>& products, Invocation& call) const {
    const F32Code& code = machine_.code;
    const bool pack = !packed_ && (attrs_.trans_b || (p.m > 24 && p.n > 128));
    if (!pack && !attrs_.trans_a) return multiply(products, call);
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
      packed_b(g);
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
    multiply(products, call);
  }

  MatMulAttrs attrs_;
  ActivationSpec activation_;
  Machine machine_;
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
  const std::string layout = std::string(code.layout) + (trans_b ? " transposed" : "");
  return packed_weights(*b, layout, code.packed_floats(k, n) * sizeof(float), [&](std::byte* out) {
    code.pack_b(b->as<float>().data(), trans_b ? k : n, trans_b, k, n, 0, code.panels(n),
                reinterpret_cast<float*>(out));
  });
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
