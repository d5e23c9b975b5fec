// The kernels of QMatMul4 on vectors: blocks of the rows of A are quantized as they come, then multiplied by weights of
// 4 bits.
#include <algorithm>

#include "backends/cpu/frame/shared_work.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/int4.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/low_precision_problem.h"
#include "backends/cpu/gemm/split.h"

namespace modelflow::cpu {
namespace {

using ops::QMatMul4Attrs;

/// An odd number of cache lines, so that the rows of a tile do not meet in the same set of L1.
std::size_t row_bytes(std::size_t k) { return ((k + 63) / 64 | 1) * 64; }

class QMatMul4Vectors : public Implementation {
 public:
  QMatMul4Vectors(const Call& call, const Code4& code) : attrs_(call), activation_(activation_of(call)), code_(code) {
    const Tensor &b = *call.in(1).constant, &scale = *call.in(2).constant;
    const Tensor* zero = attrs_.has_zero_point ? call.in(3).constant : nullptr;
    const auto n = static_cast<std::size_t>(b.dims()[0]), blocks = static_cast<std::size_t>(b.dims()[1]);
    const auto count = static_cast<std::int64_t>(n * blocks);
    if (scale.elements() != count || (zero && zero->elements() != count))
      throw Error(ErrorKind::invalid_input, "QMatMul4: not one scale and one zero point per block");
    const std::string layout = "gemm4 " + fingerprint(scale) + (zero ? " " + fingerprint(*zero) : "");
    const Weights4 weights{n,
                           blocks,
                           attrs_.block,
                           b.as<std::uint8_t>().data(),
                           scale.as<float>().data(),
                           zero ? zero->as<float>().data() : nullptr};
    bytes_ = packed_b4_bytes(weights);
    packed_ = packed_weights(b, layout, bytes_, [&](std::byte* out) { pack_b4(weights, out); });
  }

  void run(Invocation& call) const override {
    const QMatMul4Problem p(attrs_, call);
    auto* y = static_cast<float*>(call.output(0, p.y));
    if (p.m == 0 || p.n == 0) return;
    const std::size_t row = row_bytes(p.k);
    auto* a = reinterpret_cast<std::int8_t*>(call.scratch(p.m * row));
    auto* steps = reinterpret_cast<BlockSteps*>(call.scratch(p.m * p.blocks * sizeof(BlockSteps)));
    const Gemm4 g{.n = p.n,
                  .blocks = p.blocks,
                  .block = attrs_.block,
                  .zero_points = attrs_.has_zero_point,
                  .a = a,
                  .lda = row,
                  .steps = steps,
                  .b = packed_.get(),
                  .out = {y, p.n, p.bias, p.residual, attrs_.residual, activation_}};
    const auto quantize = [&](std::size_t m0, std::size_t m1) {
      code_.quantize_blocks(p.a + m0 * p.k, m1 - m0, p.blocks, attrs_.block, a + m0 * row, row, steps + m0 * p.blocks);
    };
    const auto bytes = static_cast<double>(bytes_);
    const ProductSplit s = split_product({p.m, p.n, p.k, kPanel4, bytes}, call.threads());
    const std::size_t parts = std::clamp<std::size_t>(p.m * p.k / 16384, 1, std::min(p.m, call.threads() * 2));
    SharedWork rows(parts);
    const auto multiply = [&](std::size_t task) {
      rows.finish([&](std::size_t part) { quantize(p.m * part / parts, p.m * (part + 1) / parts); });
      const std::size_t i = task / s.panels, j = task % s.panels, all = (p.n + kPanel4 - 1) / kPanel4;
      const std::size_t n0 = all * j / s.panels * kPanel4, n1 = all * (j + 1) / s.panels * kPanel4;
      code_.multiply(g, p.m * i / s.rows, p.m * (i + 1) / s.rows, n0, std::min(n1, p.n));
    };
    if (s.tasks() == 1) return multiply(0);
    call.parallel(s.tasks(), multiply);
  }

 private:
  QMatMul4Attrs attrs_;
  ActivationSpec activation_;
  const Code4& code_;
  std::size_t bytes_ = 0;
  std::shared_ptr<const std::byte> packed_;
};

Verdict accepts(const Call& call, const Target& target) {
  if (Verdict v = accepts_qmatmul4(call, target); !v) return v;
  for (std::size_t i = 1; i < 3u + QMatMul4Attrs(call).has_zero_point; ++i) {
    if (!call.in(i).constant) return no("is not constant", call.in(i).name);
  }
  const Tensor& b = *call.in(1).constant;
  if (b.dims()[2] * 2 != static_cast<std::int64_t>(QMatMul4Attrs(call).block))
    return no("has other blocks", call.in(1).name);
  return b.elements() > 0 ? yes() : no("is empty", call.in(1).name);
}

/// In units of what an fma does, at 0.45 of the peak.
template <int products>
double cost(const Call& call, const Target& target) {
  const ProductWork work = qmatmul4_work(call);
  return std::max(target.compute(work.steps / products, 0.45) + target.compute(work.epilogue),
                  target.stream(work.bytes));
}

template <const Code4& code>
std::unique_ptr<Implementation> create(const Call& call, const Target&) {
  return std::make_unique<QMatMul4Vectors>(call, code);
}

}  // namespace

const Kernel qmatmul4_vnni = {.op = "QMatMul4",
                              .name = "cpu.qmatmul4_vnni",
                              .needs = Isa::avx512_vnni,
                              .accepts = accepts,
                              .cost = cost<4>,
                              .create = create<code4_vnni>};

const Kernel qmatmul4_avx_vnni = {.op = "QMatMul4",
                                  .name = "cpu.qmatmul4_avx_vnni",
                                  .needs = Isa::avx_vnni,
                                  .accepts = accepts,
                                  .cost = cost<4>,
                                  .create = create<code4_quads_avx2>};

const Kernel qmatmul4_avx2 = {.op = "QMatMul4",
                              .name = "cpu.qmatmul4_avx2",
                              .needs = Isa::avx2,
                              .accepts = accepts,
                              .cost = cost<2>,
                              .create = create<code4_avx2>};

}  // namespace modelflow::cpu
