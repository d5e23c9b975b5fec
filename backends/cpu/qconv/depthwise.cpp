// The kernel of depthwise convolutions of 8-bit numbers on VNNI: packed weights, and how the output is cut into tasks.
#include <algorithm>

#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/qconv/depthwise_vnni.h"
#include "backends/cpu/qconv/kernels.h"

namespace modelflow::cpu {
namespace {

// Blocks of 64 channels; what is left at the end takes 16 or 32 with several pixels in a vector.
std::vector<QDepthBlock> split(std::int64_t channels, std::int64_t bytes_per_unit) {
  std::vector<QDepthBlock> blocks;
  for (std::int64_t first = 0; first < channels;) {
    const std::int64_t here = std::min<std::int64_t>(channels - first, 64);
    const std::int64_t units = here <= 16 ? 1 : here <= 32 ? 2 : 4;
    const auto index = static_cast<std::int64_t>(blocks.size());
    blocks.push_back({first, here, units, index * bytes_per_unit, index * 64});
    first += here;
  }
  return blocks;
}

// Channel of the block that a position of 64 stands for; -1 when there is none.
std::int64_t channel_at(const QDepthBlock& block, std::int64_t position) {
  const std::int64_t channel = position % (16 * block.units);
  return channel < block.channels ? block.first + channel : -1;
}

// [C, 1, kh, kw] to what QDepthBlock describes.
void pack(const std::int8_t* w, const ConvGeometry& g, const QDepthBlock& block, std::int8_t* to) {
  const QDepthRows rows = depthwise_rows(g);
  for (std::int64_t i = 0; i < 4 * rows.quads * g.kernel_w * rows.results; ++i) {
    const std::int64_t result = i % rows.results, column = i / rows.results % g.kernel_w;
    const std::int64_t quad = i / rows.results / g.kernel_w % rows.quads;
    const std::int64_t vector = i / rows.results / g.kernel_w / rows.quads;
    for (std::int64_t b = 0; b < 64; ++b) {
      const std::int64_t row = 4 * quad + b % 4 - result * g.stride_h;
      const std::int64_t channel = channel_at(block, depthwise_position(vector, b / 4));
      const bool exists = channel >= 0 && row >= 0 && row < g.kernel_h;
      *to++ = exists ? w[(channel * g.kernel_h + row) * g.kernel_w + column] : std::int8_t{0};
    }
  }
}

// Rows and blocks of a task: some 5 us of work at least, and more tasks than threads. Groups of blocks share nothing,
// neighbouring rows are read twice.
struct Cut {
  std::int64_t rows, blocks;
};

Cut cut(const ConvGeometry& g, std::int64_t blocks, std::int64_t threads) {
  const double products = static_cast<double>(g.batch * g.rows * g.columns * blocks) * 64 *
                          static_cast<double>(g.kernel_h * g.kernel_w + 9);
  const std::int64_t per_image = ceil_div(conv_tasks(products / 2.5e5, threads), g.batch),
                     groups = std::min(per_image, blocks);
  const std::int64_t at_once = depthwise_rows(g).results, rows = ceil_div(g.rows, ceil_div(per_image, groups));
  return {ceil_div(rows, at_once) * at_once, ceil_div(blocks, groups)};
}

class Depthwise : public Implementation {
 public:
  explicit Depthwise(const Call& call) : node_(call), zeros_(64, static_cast<std::uint8_t>(node_.attrs.x.zero_point)) {
    const Tensor& w = *call.in(1).constant;
    const ops::ConvAttrs& conv = node_.attrs.conv;
    weights_dims_ = w.dims();
    Dims x(conv.rank() + 2, 1);
    x[conv.rank() + 1] = w.dims()[0];
    const ConvGeometry g = conv_geometry(conv, weights_dims_, x);
    const QDepthRows rows = depthwise_rows(g);
    const std::int64_t block_bytes = 4 * rows.quads * g.kernel_w * rows.results * 64;
    blocks_ = split(g.channels, block_bytes);
    const QScales scales(call, node_);
    for (const QDepthBlock& block : blocks_) {
      for (std::int64_t i = 0; i < 64; ++i) {
        const std::int64_t channel = channel_at(block, depthwise_position(i / 16, i % 16));
        begin_.push_back(channel < 0 ? 0 : scales.begin[static_cast<std::size_t>(channel)]);
        scale_.push_back(channel < 0 ? 0 : scales.scale[static_cast<std::size_t>(channel)]);
      }
    }
    const std::string layout =
        "qconv_depthwise_vnni " + std::to_string(rows.results) + " " + std::to_string(g.stride_h);
    const auto bytes = static_cast<std::size_t>(block_bytes) * blocks_.size();
    weights_ = packed_weights(w, layout, bytes, [&](std::byte* to) {
      for (const QDepthBlock& block : blocks_)
        pack(w.as<std::int8_t>().data(), g, block, reinterpret_cast<std::int8_t*>(to) + block.weights);
    });
  }

  void run(Invocation& call) const override {
    const QConvOperands o = node_.operands(call);
    const ConvGeometry g = conv_geometry(node_.attrs.conv, weights_dims_, o.x_dims);
    expect_extents_of_31_bits(g);
    if (g.batch * g.rows * g.columns == 0) return;
    const QDepthwiseRun run{g,
                            o.x,
                            o.added,
                            o.y,
                            node_.epilogue,
                            zeros_.data(),
                            reinterpret_cast<const std::int8_t*>(weights_.get()),
                            blocks_.data(),
                            begin_.data(),
                            scale_.data()};
    const auto count = static_cast<std::int64_t>(blocks_.size());
    const Cut c = cut(g, count, static_cast<std::int64_t>(call.threads()));
    const std::int64_t groups = ceil_div(count, c.blocks), down = ceil_div(g.rows, c.rows);
    run_with_scratch(call, g.batch * down * groups, qdepthwise_scratch(g), [&](std::int64_t i, std::byte* scratch) {
      const std::int64_t group = i % groups, row = i / groups % down * c.rows;
      const QDepthTask task{i / groups / down, row, std::min(g.rows, row + c.rows), group * c.blocks,
                            std::min(count, (group + 1) * c.blocks)};
      qdepthwise_block_vnni(run, task, scratch);
    });
  }

 private:
  QConvNode node_;
  Dims weights_dims_;
  std::vector<QDepthBlock> blocks_;
  std::vector<std::int32_t> begin_;
  std::vector<float> scale_;
  std::vector<std::uint8_t> zeros_;
  std::shared_ptr<const std::byte> weights_;
};

}  // namespace

const Kernel qconv_depthwise_vnni = {
    .op = "QConv",
    .name = "cpu.qconv_depthwise_vnni",
    .needs = Isa::avx512_vnni,
    .accepts = accepts_qconv_depthwise,
    .cost = [](const Call& call, const Target& target) { return qconv_cost(call, target, 0.2); },
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<Depthwise>(call);
    },
};

}  // namespace modelflow::cpu
