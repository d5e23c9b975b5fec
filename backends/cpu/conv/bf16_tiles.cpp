// The kernels of convolutions of bfloat16 on AMX: for each position of the window a product of the pixels under it and
// its weights, summed in the tiles. x is read where it lies, or from a copy in lines (ConvLines) as large as stays in
// L2. Convolutions of float32, split into parts as matrix products are, were no faster on tiles than on AVX-512
// (ResNet-50, EfficientNet, PP-OCR detection).
#include <algorithm>

#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/lines.h"
#include "backends/cpu/conv/padding.h"
#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/bf16_int8_amx.h"
#include "backends/cpu/gemm/split.h"
#include "backends/cpu/loops/bf16.h"
#include "backends/ops/work.h"

namespace modelflow::cpu {
namespace {

/// Lines of a task stay in L2 (2 MiB) beside some panels of weights.
constexpr std::size_t kLineBytes = 512 << 10;

std::size_t panels_of(std::size_t columns) { return (columns + kTileBlock - 1) / kTileBlock; }

/// One run, cut into tasks: some panels of positions of an image by some panels of filters.
struct Tiling {
  ConvLines lines;
  TilePanels positions;  // of one image; a row is one pixel
  bool in_place;
  std::size_t pixel_bytes = 0, blocks = 1, groups = 1;
  std::int64_t most_lines = 0;
  std::vector<std::size_t> taps;

  Tiling(const ConvBf16Problem& p, std::size_t taps_of_window, std::size_t threads)
      : lines(p), positions{lines.positions(), 2 * static_cast<std::size_t>(lines.g.channels)} {
    const auto filters = static_cast<std::size_t>(p.filters), images = static_cast<std::size_t>(lines.g.batch);
    in_place =
        lines.is_product && p.x.dtype == DType::bf16 && positions.row % kTileBytes == 0 && positions.m >= kTileBlock;
    pixel_bytes = in_place ? positions.row : tile_row(positions.row);
    const std::size_t depth = taps_of_window * static_cast<std::size_t>(lines.g.channels);
    const ProductSplit s = split_product(
        {positions.m * images, filters, depth, kTileBlock, 2.0 * static_cast<double>(depth * filters)}, threads);
    const std::size_t copied = in_place ? 0 : lines.grids.size() * lines.grid_pixels(lines.g.rows) * pixel_bytes;
    const std::size_t needed = (copied + kLineBytes - 1) / kLineBytes;
    blocks = std::min(std::max((s.rows + images - 1) / images, needed), positions.count());
    // Every group of filters copies its lines again.
    groups = std::min({s.panels, in_place ? s.panels : threads, panels_of(filters)});
    const auto most = static_cast<std::int64_t>((positions.m + blocks - 1) / blocks + kTileBlock);
    most_lines = std::min(most / lines.pitch + 2, lines.g.rows);
    taps = in_place ? std::vector<std::size_t>(1) : lines.taps(most_lines, pixel_bytes);
  }
  std::size_t tasks() const { return static_cast<std::size_t>(lines.g.batch) * blocks * groups; }
  std::size_t scratch() const {
    return in_place ? 0 : lines.grids.size() * lines.grid_pixels(most_lines) * pixel_bytes;
  }
};

class ConvBf16Tiles : public Implementation {
 public:
  explicit ConvBf16Tiles(const Call& call) : node_(call), to_bf16_(call.outputs.at(0).dtype == DType::bf16) {
    const Tensor& w = *call.in(1).constant;
    filters_ = static_cast<std::size_t>(w.dims()[0]);
    const auto channels = static_cast<std::size_t>(w.dims()[1]);
    const std::size_t window = static_cast<std::size_t>(w.elements()) / filters_ / channels;
    const std::int64_t wide = w.dims().back();
    // [M, C, window] -> [M, taps, what a tap reads], which fills whole tiles
    gathers_ = ConvLines::gathers(w.dims()[1], wide, node_.conv.dilations.back());
    const std::size_t of_tap = gathers_ ? static_cast<std::size_t>(wide) : 1;
    taps_ = window / of_tap;
    const std::size_t row = tile_steps(2 * channels * of_tap) * kTileBytes / 2, depth = taps_ * row;
    packed_ = packed_weights(w, "conv_bf16_amx", packed_b_bf16_amx_bytes(depth, filters_), [&](std::byte* out) {
      const auto* from = reinterpret_cast<const std::uint16_t*>(w.data());
      std::vector<std::uint16_t> rows(filters_ * depth);
      for (std::size_t m = 0; m < filters_; ++m)
        for (std::size_t c = 0; c < channels; ++c)
          for (std::size_t i = 0; i < window; ++i)
            rows[m * depth + i / of_tap * row + i % of_tap * channels + c] = from[(m * channels + c) * window + i];
      pack_b_bf16_amx(rows.data(), true, depth, filters_, reinterpret_cast<std::uint16_t*>(out));
    });
  }

  void run(Invocation& call) const override {
    const ConvBf16Problem p = node_.bf16_problem(call);
    if (p.batch * p.rows * p.columns == 0) return;
    const Tiling t(p, taps_, call.threads());
    run_with_scratch(call, static_cast<std::int64_t>(t.tasks()), t.scratch(),
                     [&](std::int64_t task, std::byte* scratch) {
                       const auto i = static_cast<std::size_t>(task);
                       run_block(p, t, i / t.groups / t.blocks, i / t.groups % t.blocks, i % t.groups, scratch);
                     });
  }

 private:
  void run_block(const ConvBf16Problem& p, const Tiling& t, std::size_t image, std::size_t block, std::size_t group,
                 std::byte* scratch) const {
    const std::size_t count = t.positions.count(), begin = t.positions.begin(count * block / t.blocks),
                      end = t.positions.begin(count * (block + 1) / t.blocks);
    const ConvGeometry& g = t.lines.g;
    const bool bf16 = p.x.dtype == DType::bf16;
    const auto* x = static_cast<const std::byte*>(p.x.data) +
                    image * static_cast<std::size_t>(p.height * p.width * p.channels) * (bf16 ? 2 : 4);
    TileRowsAt at{t.pixel_bytes,
                  t.positions.m - begin,
                  t.taps.data(),
                  t.taps.size(),
                  begin,
                  static_cast<std::size_t>(t.lines.pitch),
                  static_cast<std::size_t>(g.columns)};
    const std::byte* a = x + begin * t.pixel_bytes;
    if (!t.in_place) {
      const auto first = static_cast<std::int64_t>(begin) / t.lines.pitch;
      const auto last = static_cast<std::int64_t>(end - 1) / t.lines.pitch + 1;
      if (gathers_)
        gather_lines_amx(t.lines, p, x, bf16, first, last, t.most_lines, scratch);
      else
        copy_lines_amx(t.lines, x, bf16, first, last, t.most_lines, t.pixel_bytes, scratch);
      a = scratch + (begin - static_cast<std::size_t>(first * t.lines.pitch)) * t.pixel_bytes;
      at.readable = SIZE_MAX;  // there is room behind the last line
    }
    const TilePanels rows{end - begin, t.positions.row};
    const TileGemm gemm{
        rows, filters_, a, packed_.get(), epilogue(p, image * static_cast<std::size_t>(g.rows * g.columns) * filters_),
        &at};
    const std::size_t panels = panels_of(filters_);
    gemm_bf16_amx(gemm, 0, rows.count(), panels * group / t.groups * kTileBlock,
                  std::min(panels * (group + 1) / t.groups * kTileBlock, filters_));
  }

  /// `at`: where the results of an image begin.
  ProductEpilogue epilogue(const ConvBf16Problem& p, std::size_t at) const {
    ProductEpilogue e;
    e.n = filters_, e.bias = p.bias, e.activation = p.activation;
    if (p.residual != ops::Residual::none) {
      e.residual_use = p.residual;
      if (p.added.dtype == DType::bf16)
        e.residual_bf16 = static_cast<const std::uint16_t*>(p.added.data) + at;
      else
        e.residual = static_cast<const float*>(p.added.data) + at;
    }
    if (to_bf16_)
      e.c_bf16 = static_cast<std::uint16_t*>(p.y) + at;
    else
      e.c = static_cast<float*>(p.y) + at;
    return e;
  }

  ConvNode node_;
  bool to_bf16_, gathers_ = false;
  std::size_t filters_ = 0, taps_ = 0;
  std::shared_ptr<const std::byte> packed_;
};

Verdict accepts(const Call& call, const Target&) {
  if (Verdict v = accepts_conv_bf16(call, 2); !v) return v;
  const ops::ConvAttrs conv(call);
  const Dims& w = call.in(1).constant->dims();
  const bool gathers = ConvLines::gathers(w[1], w.back(), conv.dilations.back());
  if ((!conv.x_last && !gathers) || !conv.y_last) return no("channels are not last", call.in(0).name);
  if (conv.group > 1) return no("has groups", call.in(1).name);
  // Less than one row of a tile: most of the work is what surrounds the product.
  if (call.in(1).constant->elements() / w[0] < static_cast<std::int64_t>(kTileBytes / 2))
    return no("sums are short", call.in(1).name);
  constexpr std::int64_t kLeastChannels = 16;  // of which a pixel is copied
  if (w[1] < kLeastChannels && !gathers) return no("has few channels", call.in(0).name);
  return accepts_copy(call);
}

/// How much of the tiles numbers of the convolution fill: a step has what a tap reads, a column a filter.
double filled(const Call& call) {
  const Dims& w = call.in(1).constant->dims();
  const ops::ConvAttrs conv(call);
  const bool gathers = ConvLines::gathers(w[1], w.back(), conv.dilations.back());
  const auto share = [](std::int64_t n, std::size_t whole) {
    return static_cast<double>(n) / static_cast<double>((static_cast<std::size_t>(n) + whole - 1) / whole * whole);
  };
  return share(w[1] * (gathers ? w.back() : 1), kTileBytes / 2) * share(w[0], kTileColumns);
}

double cost(const Call& call, const Target& target) {
  constexpr double kGain = 16;  // products of a tile for one of float32
  const double copies = 1.5 * 4 * call.in(0).shape.known_elements() / (target.l2_bandwidth * target.cores);
  return std::max(target.compute(ops::conv_flops(call) / (kGain * filled(call)), 0.4) + copies,
                  target.stream(conv_bytes(call)));
}

std::unique_ptr<Implementation> create(const Call& call, const Target&) {
  return std::make_unique<ConvBf16Tiles>(call);
}

}  // namespace

const Kernel conv_bf16_amx = {
    .op = "ConvBf16",
    .name = "cpu.conv_bf16_amx",
    .needs = Isa::amx,
    .accepts = accepts,
    .cost = cost,
    .create = create,
};

const Kernel conv_to_bf16_amx = {
    .op = "ConvToBf16",
    .name = "cpu.conv_to_bf16_amx",
    .needs = Isa::amx,
    .accepts = accepts,
    .cost = cost,
    .create = create,
};

}  // namespace modelflow::cpu
