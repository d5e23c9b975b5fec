// The kernels of MatMul and MatMulBf16 on AMX.
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/bf16_int8_amx.h"
#include "backends/cpu/gemm/f32_tiles.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/low_precision_problem.h"
#include "backends/cpu/gemm/matmul_problem.h"
#include "backends/cpu/gemm/tasks.h"

namespace modelflow::cpu {
namespace {

using ops::MatMulAttrs;
using ops::MatMulBf16Attrs;

class MatMulBf16Tiles : public Implementation {
 public:
  explicit MatMulBf16Tiles(const Call& call)
      : attrs_(call), activation_(activation_of(call)), to_bf16_(call.outputs.at(0).dtype == DType::bf16) {
    const Tensor& b = *call.in(1).constant;
    const bool transposed = attrs_.trans_b;
    const auto k = static_cast<std::size_t>(b.dims()[transposed]);
    const auto n = static_cast<std::size_t>(b.dims()[1 - transposed]);
    const std::string layout = std::string("gemm_bf16_amx") + (transposed ? " transposed" : "");
    packed_ = packed_weights(b, layout, packed_b_bf16_amx_bytes(k, n), [&](std::byte* out) {
      pack_b_bf16_amx(reinterpret_cast<const std::uint16_t*>(b.data()), transposed, k, n,
                      reinterpret_cast<std::uint16_t*>(out));
    });
  }

  void run(Invocation& call) const override {
    const MatMulBf16Problem p(attrs_, call);
    void* y = call.output(0, p.y);
    if (p.m == 0 || p.n == 0) return;
    const TilePanels a{p.m, 2 * p.k};
    const bool bf16 = p.a.dtype == DType::bf16, in_place = bf16 && a.row % kTileBytes == 0 && p.m >= kTileBlock;
    std::byte* copy = in_place ? nullptr : call.scratch(a.bytes());
    constexpr std::size_t kBegin = 0;
    const TileRowsAt at{a.row, p.m, &kBegin, 1, 0, 1, 1};
    const std::byte* rows = in_place ? static_cast<const std::byte*>(p.a.data) : copy;
    const TileGemm g{a, p.n, rows, packed_.get(), epilogue(p, y), in_place ? &at : nullptr};
    const double bytes = 2.0 * static_cast<double>(p.n) * static_cast<double>(p.k);
    share_product(
        a, {p.m, p.n, p.k, kTileBlock, bytes}, 0, call,
        [&](std::size_t begin, std::size_t end) {
          if (in_place) return;
          if (bf16) return copy_rows_amx(a, static_cast<const std::uint16_t*>(p.a.data), p.k, begin, end, copy);
          copy_rows_amx(a, static_cast<const float*>(p.a.data), p.k, begin, end, copy);
        },
        [&](std::size_t begin, std::size_t end, std::size_t n0, std::size_t n1, std::byte*) {
          gemm_bf16_amx(g, begin, end, n0, n1);
        });
  }

 private:
  ProductEpilogue epilogue(const MatMulBf16Problem& p, void* y) const {
    ProductEpilogue e{nullptr, p.n, p.bias, p.residual, attrs_.residual, activation_};
    if (to_bf16_)
      e.c_bf16 = static_cast<std::uint16_t*>(y);
    else
      e.c = static_cast<float*>(y);
    return e;
  }

  MatMulBf16Attrs attrs_;
  ActivationSpec activation_;
  bool to_bf16_;
  std::shared_ptr<const std::byte> packed_;
};

std::unique_ptr<Implementation> create_bf16(const Call& call, const Target&) {
  return std::make_unique<MatMulBf16Tiles>(call);
}

class MatMulTiles : public Implementation {
 public:
  MatMulTiles(const Call& call, const Target& target)
      : attrs_(call),
        activation_(activation_of(call)),
        packed_(packed_matrix(call, attrs_.trans_b, f32_avx512)),
        vectors_(matmul_avx512.create(call, target)),
        finite_(all_finite(call.in(1).constant->as<float>())) {}

  void run(Invocation& call) const override {
    const MatMulProblem p(attrs_, call);
    const std::size_t m = p.batch * p.m;
    if (!finite_ || !tiles_pay(m, p.n, p.k)) return vectors_->run(call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    Gemm g;
    g.m = m, g.n = p.n, g.k = p.k;
    g.a = p.a, g.b = reinterpret_cast<const float*>(packed_.get()), g.c = y;
    g.scale = attrs_.scale;
    g.bias = p.bias, g.residual = p.residual, g.residual_use = attrs_.residual;
    g.activation = activation_;
    if (!multiply_on_tiles(g, call)) vectors_->run(call);
  }

 private:
  MatMulAttrs attrs_;
  ActivationSpec activation_;
  std::shared_ptr<const std::byte> packed_;
  std::unique_ptr<Implementation> vectors_;  ///< for few rows and what has no parts; reads the same packed weights
  bool finite_;                              ///< all weights
};

Verdict accepts_f32(const Call& call, const Target& target) {
  if (Verdict v = accepts_matmul(call, target); !v) return v;
  const Tensor* b = call.in(1).constant;
  if (!b || b->rank() != 2 || b->elements() == 0) return no("is no constant matrix", call.in(1).name);
  if (MatMulAttrs(call).trans_a) return no("is transposed", call.in(0).name);
  if (MatMulAttrs(call).row_bias) return no("is a bias of rows", call.in(2).name);
  return accepts_tiles(call.in(0), *b, static_cast<std::size_t>(b->dims()[1 - MatMulAttrs(call).trans_b]));
}

double cost_f32(const Call& call, const Target& target) {
  return tiles_cost(matmul_flops(call), matmul_bytes(call), target);
}

}  // namespace

const Kernel matmul_bf16_amx = {
    .op = "MatMulBf16",
    .name = "cpu.matmul_bf16_amx",
    .needs = Isa::amx,
    .accepts = accepts_rounded_product,
    .cost = rounded_product_cost,
    .create = create_bf16,
};

const Kernel matmul_to_bf16_amx = {
    .op = "MatMulToBf16",
    .name = "cpu.matmul_to_bf16_amx",
    .needs = Isa::amx,
    .accepts = accepts_rounded_product,
    .cost = rounded_product_cost,
    .create = create_bf16,
};

const Kernel matmul_amx = {
    .op = "MatMul",
    .name = "cpu.matmul_amx",
    .needs = Isa::amx,
    .accepts = accepts_f32,
    .cost = cost_f32,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<MatMulTiles>(call, target);
    },
};

}  // namespace modelflow::cpu
