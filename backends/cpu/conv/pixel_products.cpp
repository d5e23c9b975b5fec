// The kernel of float32 convolutions that are products of pixels (windows of one, no stride, channels last) on AMX.
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/problem.h"
#include "backends/cpu/gemm/f32_product.h"
#include "backends/cpu/gemm/f32_tiles.h"
#include "backends/ops/work.h"

namespace modelflow::cpu {
namespace {

class PixelProducts : public Implementation {
 public:
  PixelProducts(const Call& call, const Target& target) : node_(call), vectors_(f32_avx512, target) {
    const Tensor& w = *call.in(1).constant;
    const auto filters = static_cast<std::size_t>(w.dims()[0]), channels = static_cast<std::size_t>(w.dims()[1]);
    packed_ = packed_matrix(w, channels, filters, true, f32_avx512);
    finite_ = all_finite(w.as<float>());
  }

  void run(Invocation& call) const override {
    const ConvProblem p = node_.problem(call);
    Gemm g;
    g.m = static_cast<std::size_t>(p.batch * p.rows * p.columns);
    g.n = static_cast<std::size_t>(p.filters), g.k = static_cast<std::size_t>(p.channels);
    if (g.m == 0) return;
    g.a = p.x, g.b = reinterpret_cast<const float*>(packed_.get()), g.c = p.y;
    g.lda = g.k, g.ldc = g.ldr = g.n;
    g.bias = p.bias;
    if (p.residual != ops::Residual::none) g.residual = p.added, g.residual_use = p.residual;
    g.activation = p.activation;
    if (finite_ && tiles_pay(g.m, g.n, g.k) && multiply_on_tiles(g, call)) return;
    g.blocks = vectors_.blocks;
    vectors_.reads_packed(g);
    vectors_.multiply({&g, 1}, call);
  }

 private:
  ConvNode node_;
  F32Product vectors_;  ///< for few pixels and what has no parts
  std::shared_ptr<const std::byte> packed_;
  bool finite_;  ///< all weights
};

Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_conv(call, 2); !verdict) return verdict;
  const ops::ConvAttrs conv(call);
  const Ints ones(conv.rank(), 1);
  if (!conv.x_last || !conv.y_last) return no("channels are not last", call.in(0).name);
  if (conv.kernel != ones || conv.strides != ones || conv.pads != Ints(2 * conv.rank(), 0))
    return no("windows are not single pixels, or not at all of them", call.in(0).name);
  if (conv.group != 1) return no("has groups", call.in(1).name);
  if (conv.has_slopes) return no("has an activation that differs by filters", call.in(0).name);
  const Tensor& w = *call.in(1).constant;
  return accepts_tiles(call.in(0), w, static_cast<std::size_t>(w.dims()[0]));
}

double cost(const Call& call, const Target& target) {
  return tiles_cost(ops::conv_flops(call), conv_bytes(call), target);
}

}  // namespace

const Kernel conv_pixels_amx = {
    .op = "Conv",
    .name = "cpu.conv_pixels_amx",
    .needs = Isa::amx,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<PixelProducts>(call, target);
    },
};

}  // namespace modelflow::cpu
