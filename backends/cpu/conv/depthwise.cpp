// The kernels of depthwise convolutions and of small groups, of float32 on AVX-512 and AVX2: packed weights, and how
// the output is cut into tasks.
#include "backends/cpu/conv/depthwise.h"

#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/padding.h"
#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/ops/work.h"

namespace modelflow::cpu {
namespace {

/// With several filters per channel each channel is repeated in a copy: as many, or of fewer channels, are no longer
/// depthwise, but products.
constexpr std::int64_t kMostFilters = 8, kLeastChannels = 8;

// [C, group, kh, kw] to [kh, kw, group, C rounded up to 16].
void pack(const float* w, std::int64_t channels, std::int64_t group, std::int64_t taps, float* to) {
  const std::int64_t room = ceil_div(channels, 16) * 16;
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t g = 0; g < group; ++g)
      for (std::int64_t c = 0; c < room; ++c) *to++ = c < channels ? w[(c * group + g) * taps + tap] : 0;
}

// Rows (or columns of a single row) per task: some 5 us of work at least, and more tasks than threads.
struct Cut {
  std::int64_t rows, columns;
};

Cut cut(const ConvProblem& p, std::int64_t group, std::int64_t threads) {
  const double products = static_cast<double>(p.batch * p.rows * p.columns * p.filters) *
                          static_cast<double>(p.kernel_h * p.kernel_w * group + 6);
  const std::int64_t per_image = ceil_div(conv_tasks(products / 1.5e5, threads, 3), p.batch);
  if (p.rows == 1) return {1, ceil_div(p.columns, std::min(per_image, ceil_div(p.columns, 16)))};
  return {ceil_div(p.rows, per_image), p.columns};
}

class Depthwise : public Implementation {
 public:
  Depthwise(const Call& call, const Target& target, const DepthwiseCode& code)
      : node_(call), code_(code), l2_(target.l2) {
    const Tensor& w = *call.in(1).constant;
    const std::int64_t channels = w.dims()[0], group = w.dims()[1], taps = w.elements() / (channels * group);
    const auto bytes = static_cast<std::size_t>(ceil_div(channels, 16) * 16 * taps * group) * sizeof(float);
    weights_ = packed_weights(w, "conv_depthwise", bytes, [&](std::byte* to) {
      pack(w.as<float>().data(), channels, group, taps, reinterpret_cast<float*>(to));
    });
  }

  void run(Invocation& call) const override {
    DepthwiseRun run{node_.problem(call), reinterpret_cast<const float*>(weights_.get()), node_.weights[1]};
    const ConvProblem& p = run.problem;
    if (p.batch * p.rows * p.columns == 0) return;
    const std::int64_t floats = p.batch * (p.height * p.width * p.channels + p.rows * p.columns * p.filters);
    run.far = p.y_last && floats * 4 > l2_;
    const Cut c = cut(p, run.group, static_cast<std::int64_t>(call.threads()));
    const std::int64_t across = ceil_div(p.columns, c.columns), down = ceil_div(p.rows, c.rows);
    const auto block_of = [&](std::int64_t i) {
      const std::int64_t column = i % across * c.columns, row = i / across % down * c.rows;
      return ConvBlock{i / across / down, row, std::min(p.rows, row + c.rows), column,
                       std::min(p.columns, column + c.columns)};
    };
    std::size_t bytes = 0;
    for (std::int64_t i = 0; i < across * down; ++i) bytes = std::max(bytes, code_.scratch(run, block_of(i)));
    run_with_scratch(call, p.batch * across * down, bytes,
                     [&](std::int64_t i, std::byte* scratch) { code_.block(run, block_of(i), scratch); });
  }

 private:
  ConvNode node_;
  const DepthwiseCode& code_;
  std::int64_t l2_;
  std::shared_ptr<const std::byte> weights_;
};

Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_conv(call, 2); !verdict) return verdict;
  const Operand& w = call.in(1);
  const std::int64_t group = CallAttrs(call).integer("group"), filters = w.constant->dims()[0];
  const std::int64_t each = w.constant->dims()[1];
  const bool fits = each > 1 && kLargestGroup % each == 0;  // vectors of whole groups
  const bool grouped = fits && filters == group * each && group > 1;
  if (!grouped && (each != 1 || (filters != group && group < kLeastChannels)))
    return no("is neither one filter per channel nor small groups", w.name);
  if (!grouped && filters / group > kMostFilters) return no("has too many filters per channel", w.name);
  const bool copies = filters != group * each || CallAttrs(call).text("x_layout") != "NHWC";
  return copies ? accepts_copy(call) : yes();
}

double cost(const Call& call, const Target& target) {
  return std::max(target.compute(ops::conv_flops(call), 0.4), target.stream(conv_bytes(call)));
}

}  // namespace

const Kernel conv_depthwise_avx512 = {
    .op = "Conv",
    .name = "cpu.conv_depthwise_avx512",
    .needs = Isa::avx512,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Depthwise>(call, target, depthwise_avx512);
    },
};

const Kernel conv_depthwise_avx2 = {
    .op = "Conv",
    .name = "cpu.conv_depthwise_avx2",
    .needs = Isa::avx2,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Depthwise>(call, target, depthwise_avx2);
    },
};

}  // namespace modelflow::cpu
