// The kernels of MatMul and MatMulBf16 on AMX. Its tiles multiply bfloat16 only: MatMulBf16 rounds to it, MatMul splits
// every float32 number into three of 8 significant bits, and six of their nine products are computed; the others are
// below the last bit of the result (Henry, Tang, Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype,
// 2019).
#include <algorithm>
#include <atomic>
#include <cmath>

#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/bf16_int8_amx.h"
#include "backends/cpu/gemm/f32_amx.h"
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

/// Fewer rows leave the vector units no time to cut the weights into parts.
constexpr std::size_t kLeastRows = 48;

/// Whether six products of tiles take less time than AVX-512, in cycles of Emerald Rapids: products at the rate that
/// tiles have with numbers that are not zero (1.28 times the time), sums that pass through memory, rows and weights cut
/// into parts, and waking the unit.
bool tiles_pay(std::size_t rows, std::size_t columns, std::size_t depth) {
  const auto whole = [](std::size_t n) { return static_cast<double>((n + kTileBlock - 1) / kTileBlock * kTileBlock); };
  const auto m = static_cast<double>(rows), n = static_cast<double>(columns), k = static_cast<double>(depth);
  const double vectors = m * n * k / 29;
  const double tiles = 0.015 * m * whole(columns) * whole(depth) + 1.3 * m * n + 0.5 * m * k + 0.4 * n * k + 12000;
  return rows >= kLeastRows && tiles < vectors;
}

class MatMulTiles : public Implementation {
 public:
  MatMulTiles(const Call& call, const Target& target)
      : attrs_(call),
        activation_(activation_of(call)),
        packed_(packed_matrix(call, attrs_.trans_b, f32_avx512)),
        vectors_(matmul_avx512.create(call, target)),
        finite_(std::ranges::all_of(call.in(1).constant->as<float>(), [](float w) { return std::isfinite(w); })) {}

  void run(Invocation& call) const override {
    const MatMulProblem p(attrs_, call);
    const std::size_t m = p.batch * p.m;
    if (!finite_ || !tiles_pay(m, p.n, p.k)) return vectors_->run(call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.n == 0) return;
    const double bytes = 4.0 * static_cast<double>(p.n) * static_cast<double>(p.k);
    const ProductExtent extent{m, p.n, p.k, kTileBlock, bytes};
    F32Gemm g{{m, split_row_bytes(p.k)},
              p.n,
              p.k,
              p.a,
              nullptr,
              reinterpret_cast<const float*>(packed_.get()),
              {y, p.n, p.bias, p.residual, p.residual ? attrs_.residual : ops::Residual::none, activation_},
              attrs_.scale};
    // Rows that several tasks read are split once for all of them.
    std::byte* parts = split_product(extent, call.threads()).panels > 1 ? call.scratch(g.rows.bytes()) : nullptr;
    g.parts = parts;
    std::atomic<bool> finite = true;
    share_product(
        g.rows, extent, gemm_f32_amx_scratch(g, g.rows.count(), p.n), call,
        [&](std::size_t begin, std::size_t end) {
          if (parts && !split_rows_amx(g.rows, p.a, p.k, begin, end, parts)) finite = false;
        },
        [&](std::size_t begin, std::size_t end, std::size_t n0, std::size_t n1, std::byte* own) {
          if (!gemm_f32_amx(g, begin, end, n0, n1, own)) finite = false;
        });
    if (!finite) vectors_->run(call);
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
  constexpr std::int64_t kLeastDepth = 32, kLeastColumns = 16;
  const bool trans_b = MatMulAttrs(call).trans_b;
  if (b->dims()[trans_b] < kLeastDepth || b->dims()[1 - trans_b] < kLeastColumns)
    return no("is smaller than a tile", call.in(1).name);
  const auto least = static_cast<double>(kLeastRows);
  return rows_of_product(call, least) < least ? no("has few rows", call.in(0).name) : yes();
}

/// Six products at 16 times the rate of float32.
double cost_f32(const Call& call, const Target& target) {
  return std::max(target.compute(matmul_flops(call) * 6 / 16, 0.6), target.stream(1.5 * matmul_bytes(call)));
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
