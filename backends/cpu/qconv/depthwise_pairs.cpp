// The kernel of depthwise convolutions of 8-bit numbers on AVX2: packed weights, and how the output is cut into tasks.
#include <algorithm>

#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/qconv/depthwise_avx2.h"
#include "backends/cpu/qconv/kernels.h"

namespace modelflow::cpu {
namespace {

/// Bytes of the copy that a task reads, which stay in L2 with their wider form.
constexpr std::int64_t kCopyBytes = 64 << 10;

/// [C, 1, taps] to [groups][pairs][16][2].
void pack(const std::int8_t* w, std::int64_t channels, std::int64_t taps, std::int16_t* to) {
  for (std::int64_t c = 0; c < channels; c += kPairChannels) {
    for (std::int64_t tap = 0; tap < taps; tap += 2) {
      for (std::int64_t i = 0; i < 2 * kPairChannels; ++i) {
        const std::int64_t channel = c + depthwise_pair(i / 2), at = tap + i % 2;
        *to++ = channel < channels && at < taps ? w[channel * taps + at] : std::int16_t{0};
      }
    }
  }
}

class DepthwisePairs : public Implementation {
 public:
  explicit DepthwisePairs(const Call& call) : node_(call), weights_dims_(call.in(1).constant->dims()) {
    const Tensor& w = *call.in(1).constant;
    const std::int64_t channels = weights_dims_[0], taps = w.elements() / channels;
    const std::int64_t room = ceil_div(channels, kPairChannels) * kPairChannels;
    const QScales scales(call, node_);
    for (std::int64_t i = 0; i < room; ++i) {
      const std::int64_t placed = i / kPairChannels * kPairChannels + depthwise_pair(i % kPairChannels);
      begin_.push_back(placed < channels ? scales.begin[static_cast<std::size_t>(placed)] : 0);
      scale_.push_back(i < channels ? scales.scale[static_cast<std::size_t>(i)] : 0);
    }
    const auto bytes = static_cast<std::size_t>(room * ceil_div(taps, 2) * 2) * sizeof(std::int16_t);
    weights_ = packed_weights(w, "qconv_depthwise_pairs", bytes, [&](std::byte* to) {
      pack(w.as<std::int8_t>().data(), channels, taps, reinterpret_cast<std::int16_t*>(to));
    });
  }

  void run(Invocation& call) const override {
    const QConvOperands o = node_.operands(call);
    const ConvGeometry g = conv_geometry(node_.attrs.conv, weights_dims_, o.x_dims);
    expect_extents_of_31_bits(g);
    if (g.batch * g.rows * g.columns == 0) return;
    const QDepthPairs run{g,
                          o.x,
                          o.added,
                          o.y,
                          node_.epilogue,
                          static_cast<std::uint8_t>(node_.attrs.x.zero_point),
                          reinterpret_cast<const std::int16_t*>(weights_.get()),
                          begin_.data(),
                          scale_.data()};
    const std::int64_t rows = rows_of_task(g, static_cast<std::int64_t>(call.threads())), down = ceil_div(g.rows, rows);
    const auto task_of = [&](std::int64_t i) {
      return QDepthRowsTask{i / down, i % down * rows, std::min(g.rows, (i % down + 1) * rows)};
    };
    run_with_scratch(call, g.batch * down, qdepthwise_scratch_avx2(run, task_of(0)),
                     [&](std::int64_t i, std::byte* scratch) { qdepthwise_block_avx2(run, task_of(i), scratch); });
  }

 private:
  /// As many as the cache holds, and more tasks than threads where each has some 5 us of work.
  static std::int64_t rows_of_task(const ConvGeometry& g, std::int64_t threads) {
    const double row = static_cast<double>(g.columns * g.channels) * static_cast<double>(g.kernel_h * g.kernel_w + 9);
    const double all = row * static_cast<double>(g.batch * g.rows);
    const std::int64_t wanted = conv_tasks(all / 1e5, threads);
    const std::int64_t row_bytes = std::max<std::int64_t>(g.width * g.channels * g.stride_h, 1);  // 0: padding alone
    const std::int64_t by_cache = std::max<std::int64_t>(kCopyBytes / row_bytes, 1);
    return std::min(by_cache, ceil_div(g.rows, ceil_div(wanted, g.batch)));
  }

  QConvNode node_;
  Dims weights_dims_;
  std::vector<std::int32_t> begin_;
  std::vector<float> scale_;
  std::shared_ptr<const std::byte> weights_;
};

}  // namespace

const Kernel qconv_depthwise_avx2 = {
    .op = "QConv",
    .name = "cpu.qconv_depthwise_avx2",
    .needs = Isa::avx2,
    .accepts = accepts_qconv_depthwise,
    .cost = [](const Call& call, const Target& target) { return qconv_cost(call, target, 0.1); },
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<DepthwisePairs>(call);
    },
};

}  // namespace modelflow::cpu
