// ConvBf16 on AMX: a product of the windows of all pixels, copied and rounded for as many of them as stay in L2, and
// the weights. Results lie where the product leaves them, since channels are last. Convolutions of float32, cut into
// parts as products are, were no faster in this way than on AVX-512 (ResNet-50, EfficientNet, PP-OCR detection).
#include <algorithm>

#include "backends/cpu/bf16.h"
#include "backends/cpu/conv_rows_amx.h"
#include "backends/cpu/gemm_amx.h"
#include "backends/cpu/product_split.h"
#include "backends/cpu/scratch_tasks.h"
#include "backends/cpu/weight_cache.h"
#include "backends/kernels.h"

namespace modelflow::cpu {
namespace {

/// Windows of a task stay in L2 (2 MiB) beside some panels of weights.
constexpr std::size_t kWindowBytes = 512 << 10;

class ConvBf16Tiles : public Implementation {
 public:
  explicit ConvBf16Tiles(const Call& call) : node_(call) {
    const Tensor& w = *call.in(1).constant;
    filters_ = static_cast<std::size_t>(w.dims()[0]);
    const auto channels = static_cast<std::size_t>(w.dims()[1]);
    depth_ = static_cast<std::size_t>(w.elements()) / filters_;
    packed_ = packed_weights(w, "conv_bf16_amx", packed_b_bf16_amx_bytes(depth_, filters_), [&](std::byte* out) {
      const auto* from = reinterpret_cast<const std::uint16_t*>(w.data());
      std::vector<std::uint16_t> rows(filters_ * depth_);  // [M, C, taps] -> [M, taps, C]
      const std::size_t taps = depth_ / channels;
      for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = from[i / depth_ * depth_ + i % channels * taps + i % depth_ / channels];
      pack_b_bf16_amx(rows.data(), true, depth_, filters_, reinterpret_cast<std::uint16_t*>(out));
    });
  }

  void run(Invocation& call) const override {
    const ConvProblem p = node_.problem(call);
    const auto pixels = static_cast<std::size_t>(p.batch * p.rows * p.columns);
    if (pixels == 0) return;
    const std::size_t bytes = 2 * depth_;
    const ProductSplit s =
        split_product({pixels, filters_, depth_, kTileBlock, static_cast<double>(bytes * filters_)}, call.threads());
    const std::size_t needed = (TilePanels{pixels, bytes}.bytes() + kWindowBytes - 1) / kWindowBytes;
    const std::size_t blocks = std::min(std::max(s.rows, needed), (pixels + kTileBlock - 1) / kTileBlock);
    // Every group of filters copies its windows again.
    const std::size_t groups = std::min({s.panels, call.threads(), (filters_ + kTileBlock - 1) / kTileBlock});
    const TilePanels most{(pixels + blocks - 1) / blocks, bytes};
    run_with_scratch(
        call, static_cast<std::int64_t>(blocks * groups), most.bytes(), [&](std::int64_t task, std::byte* windows) {
          const auto i = static_cast<std::size_t>(task);
          run_block(p, pixels * (i / groups) / blocks, pixels * (i / groups + 1) / blocks, i % groups, groups, windows);
        });
  }

 private:
  void run_block(const ConvProblem& p, std::size_t begin, std::size_t end, std::size_t group, std::size_t groups,
                 std::byte* windows) const {
    using Use = ops::MatMulAttrs::Residual;
    const TilePanels rows{end - begin, 2 * depth_};
    round_windows_amx(p, p.x, static_cast<std::int64_t>(begin), rows, 0, rows.count(), windows);
    const std::size_t at = begin * filters_, panels = (filters_ + kTileBlock - 1) / kTileBlock;
    const Use use = p.residual == ops::Residual::before  ? Use::before
                    : p.residual == ops::Residual::after ? Use::after
                                                         : Use::none;
    const TileGemm g{rows,
                     filters_,
                     windows,
                     packed_.get(),
                     {p.y + at, filters_, p.bias, p.added ? p.added + at : nullptr, use, p.activation}};
    gemm_bf16_amx(g, 0, rows.count(), panels * group / groups * kTileBlock,
                  std::min(panels * (group + 1) / groups * kTileBlock, filters_));
  }

  ConvNode node_;
  std::size_t filters_ = 0, depth_ = 0;
  std::shared_ptr<const std::byte> packed_;
};

Verdict accepts(const Call& call) {
  if (Verdict v = accepts_conv(call, 2, DType::bf16); !v) return v;
  const ops::ConvAttrs conv(call.attrs);
  if (!conv.x_last || !conv.y_last) return no("channels are not last", call.in(0).name);
  if (conv.group > 1) return no("has groups", call.in(1).name);
  constexpr std::int64_t kLeastChannels = 16;  // of which a pixel is copied
  return call.in(1).constant->dims()[1] < kLeastChannels ? no("has few channels", call.in(0).name) : yes();
}

double cost(const Call& call, const Target& target) {
  const Tensor& w = *call.in(1).constant;
  const double depth = static_cast<double>(w.elements()) / static_cast<double>(w.dims()[0]);
  const double copies = 1.5 * 4 * call.in(0).shape.known_elements() / (target.l2_bandwidth * target.cores);
  return std::max(target.compute(conv_flops(call) / bf16_gain(target, depth), 0.4) + copies,
                  target.stream(conv_bytes(call) - 2 * call.in(1).shape.known_elements()));
}

}  // namespace

const Kernel conv_bf16_amx = {
    .op = "ConvBf16",
    .name = "cpu.conv_bf16_amx",
    .needs = Isa::amx,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<ConvBf16Tiles>(call);
    },
};

}  // namespace modelflow::cpu
