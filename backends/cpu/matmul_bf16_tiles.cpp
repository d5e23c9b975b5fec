#include <algorithm>

#include "backends/cpu/bf16.h"
#include "backends/cpu/gemm_amx.h"
#include "backends/cpu/product_split.h"
#include "backends/cpu/qmatmul_problem.h"
#include "backends/cpu/shared_work.h"
#include "backends/cpu/weight_cache.h"
#include "backends/kernels.h"

namespace modelflow::cpu {
namespace {

using ops::MatMulBf16Attrs;

class MatMulBf16Tiles : public Implementation {
 public:
  explicit MatMulBf16Tiles(const Call& call) : attrs_(call.attrs), activation_(activation_of(call.attrs)) {
    const Tensor& b = *call.in(1).constant;
    const auto k = static_cast<std::size_t>(b.dims()[attrs_.trans_b]);
    const auto n = static_cast<std::size_t>(b.dims()[1 - attrs_.trans_b]);
    const std::string layout = std::string("gemm_bf16_amx") + (attrs_.trans_b ? " transposed" : "");
    packed_ = packed_weights(b, layout, packed_b_bf16_amx_bytes(k, n), [&](std::byte* out) {
      pack_b_bf16_amx(reinterpret_cast<const std::uint16_t*>(b.data()), attrs_.trans_b, k, n,
                      reinterpret_cast<std::uint16_t*>(out));
    });
  }

  void run(Invocation& call) const override {
    const MatMulBf16Problem p(attrs_, call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.m == 0 || p.n == 0) return;
    const TilePanels a{p.m, 2 * p.k};
    std::byte* rounded = call.scratch(a.bytes());
    const TileGemm g{a, p.n, rounded, packed_.get(), {y, p.n, p.bias, p.residual, attrs_.residual, activation_}};
    const double bytes = 2.0 * static_cast<double>(p.n) * static_cast<double>(p.k);
    const ProductSplit s = split_product({p.m, p.n, p.k, kTileBlock, bytes}, call.threads());
    const std::size_t parts = std::clamp<std::size_t>(p.m * p.k / 16384, 1, std::min(a.count(), call.threads() * 2));
    SharedWork rows(parts);
    const auto multiply = [&](std::size_t task) {
      const std::size_t i = task / s.panels, j = task % s.panels, all = (p.n + kTileBlock - 1) / kTileBlock;
      const std::size_t begin = a.count() * i / s.rows, end = a.count() * (i + 1) / s.rows;
      if (s.panels == 1) {
        round_rows_amx(a, p.a, begin, end, rounded);
      } else {  // several tasks read the same rows
        rows.finish([&](std::size_t part) {
          round_rows_amx(a, p.a, a.count() * part / parts, a.count() * (part + 1) / parts, rounded);
        });
      }
      const std::size_t n0 = all * j / s.panels * kTileBlock, n1 = all * (j + 1) / s.panels * kTileBlock;
      gemm_bf16_amx(g, begin, end, n0, std::min(n1, p.n));
    };
    if (s.tasks() == 1) return multiply(0);
    call.parallel(s.tasks(), multiply);
  }

 private:
  MatMulBf16Attrs attrs_;
  ActivationSpec activation_;
  std::shared_ptr<const std::byte> packed_;
};

/// Below that, AVX-512 reads weights as fast as memory gives them, and tiles stay mostly empty.
constexpr double kFewRows = 4;

Verdict accepts(const Call& call) {
  if (Verdict v = accepts_matmul_bf16(call); !v) return v;
  if (!MatMulBf16Attrs(call.attrs).round_a) return no("is to stay in float32", call.in(0).name);
  if (rows_of_product(call, kFewRows) < kFewRows) return no("has few rows", call.in(0).name);
  const Tensor* b = call.in(1).constant;
  return b && b->elements() > 0 ? yes() : no("is not constant, or empty", call.in(1).name);
}

double cost(const Call& call, const Target& target) {
  const ProductWork work = matmul_bf16_work(call);
  const Dims& b = call.in(1).constant->dims();
  const double gain = bf16_gain(target, static_cast<double>(b[call.attrs.integer("trans_b") != 0]));
  return std::max(target.compute(work.steps / gain, 0.5) + target.compute(work.epilogue), target.stream(work.bytes));
}

}  // namespace

const Kernel matmul_bf16_amx = {
    .op = "MatMulBf16",
    .name = "cpu.matmul_bf16_amx",
    .needs = Isa::amx,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<MatMulBf16Tiles>(call);
    },
};

}  // namespace modelflow::cpu
