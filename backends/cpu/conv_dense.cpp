#include <algorithm>
#include <cstring>

#include "backends/cpu/conv_dense_avx512.h"
#include "backends/cpu/conv_problem.h"
#include "backends/cpu/weight_cache.h"
#include "backends/kernels.h"

namespace modelflow::cpu {
namespace {

// Three vectors per panel give the fastest tile (9 pixels x 48 filters); what is left over goes into one panel of four
// or of two, or with the half vector at the end into one of up to four.
std::vector<DensePanel> split(std::int64_t filters, std::int64_t products, bool halves) {
  std::vector<DensePanel> panels;
  const bool half = halves && filters % 16 > 0 && filters % 16 <= 8;
  const std::int64_t vectors = (filters + 15) / 16;
  std::int64_t offset = 0;
  for (std::int64_t at = 0; at < vectors;) {
    const std::int64_t left = vectors - at;
    const std::int64_t take = left <= 4 ? left : left % 3 == 1 && !half ? 4 : 3;
    const bool last = half && at + take == vectors;
    panels.push_back({at, take, offset, last});
    offset += (last ? 32 * take - 16 : 32 * take) * products / 2;
    at += take;
  }
  return panels;
}

std::int64_t packed_size(const std::vector<DensePanel>& panels, std::int64_t products) {
  return panels.back().offset + 16 * panels.back().vectors * products;
}

// [M, C, kh, kw] to what DensePanel describes.
void pack(const float* w, const Dims& dims, const DensePanel& panel, float* at) {
  const std::int64_t filters = dims[0], channels = dims[1], taps = element_count(dims) / (filters * channels);
  const auto weight = [&](std::int64_t f, std::int64_t tap, std::int64_t c) {
    return f < filters ? w[(f * channels + c) * taps + tap] : 0;
  };
  const std::int64_t first = panel.first * 16, full = first + (panel.vectors - panel.half) * 16;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t f = first; f < full; ++f) *at++ = weight(f, tap, c);
      if (!panel.half || c % 2 == 0) continue;
      for (std::int64_t f = full; f < full + 8; ++f) {
        *at++ = weight(f, tap, c - 1);
        *at++ = weight(f, tap, c);
      }
    }
  }
}

// A product over pixels: all images are one row of pixels, where the layouts allow it.
void flatten(ConvProblem& p) {
  if (p.kernel_h != 1 || p.kernel_w != 1 || p.stride_h != 1 || p.stride_w != 1 || p.top || p.left) return;
  if (p.rows != p.height || p.columns != p.width) return;
  p.width = p.columns = p.height * p.width;
  p.height = p.rows = 1;
  if (!p.x_last || !p.y_last) return;
  p.width = p.columns = p.width * p.batch;
  p.batch = 1;
}

// How the output is cut: blocks whose input stays in L2 beside the weights of a panel, and more tasks than threads
// when the work is worth it. About 2 MFLOP (some 10 us) is the least that a task should have.
struct Cut {
  std::int64_t rows, columns;  // of a block
  std::int64_t panels;         // of a task
};

constexpr std::int64_t kBandFloats = 72 << 10;

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Cut cut(const ConvProblem& p, std::int64_t panels, std::int64_t threads) {
  const std::int64_t taps = p.kernel_h * p.kernel_w * p.channels;
  const std::int64_t images = p.batch * p.rows * p.columns;
  const auto flops = 2.0 * static_cast<double>(images) * static_cast<double>(taps) * static_cast<double>(p.filters);
  const std::int64_t wanted =
      threads < 2 ? 1 : std::clamp<std::int64_t>(static_cast<std::int64_t>(flops / 2e6), 1, 6 * threads);
  const std::int64_t per_image = up(wanted, p.batch);
  Cut c{p.rows, p.columns, panels};
  const std::int64_t pixel = p.channels * p.stride_h * p.stride_w;
  if (p.rows == 1 || p.columns * p.kernel_h * pixel > 2 * kBandFloats) {
    const std::int64_t least = std::min<std::int64_t>(p.columns, 36);
    const std::int64_t by_cache = std::max<std::int64_t>(kBandFloats / (pixel * (p.rows == 1 ? 1 : p.kernel_h)), least);
    c.columns = std::clamp(up(p.columns, p.rows == 1 ? per_image : 1), least, by_cache);
    c.columns = up(p.columns, up(p.columns, c.columns));
    c.rows = 1;
  } else {
    const std::int64_t by_cache = std::max<std::int64_t>(kBandFloats / (p.columns * pixel) - p.kernel_h / 2, 1);
    const std::int64_t least = std::min<std::int64_t>(p.rows, p.kernel_h > 1 ? 2 * p.stride_h : up(36, p.columns));
    c.rows = std::clamp(up(p.rows, per_image), std::min(least, by_cache), by_cache);
    c.rows = up(p.rows, up(p.rows, c.rows));
  }
  const std::int64_t blocks = p.batch * up(p.rows, c.rows) * up(p.columns, c.columns);
  c.panels = up(panels, std::clamp<std::int64_t>(up(wanted, blocks), 1, panels));
  return c;
}

class Dense : public Implementation {
 public:
  explicit Dense(const Call& call) : node_(call) {
    const Tensor& w = *call.in(1).constant;
    const std::int64_t products = w.elements() / w.dims()[0];
    const std::int64_t channels = w.dims()[1];
    const bool halves = channels % 2 == 0 && !reads_planes(node_.conv.x_last, channels);
    panels_ = split(w.dims()[0], products, halves);
    const auto bytes = static_cast<std::size_t>(packed_size(panels_, products)) * sizeof(float);
    weights_ = packed_weights(w, halves ? "conv_dense_avx512 halves" : "conv_dense_avx512", bytes, [&](std::byte* to) {
      for (const DensePanel& panel : panels_)
        pack(w.as<float>().data(), w.dims(), panel, reinterpret_cast<float*>(to) + panel.offset);
    });
  }

  void run(Invocation& call) const override {
    DenseRun run{node_.problem(call), reinterpret_cast<const float*>(weights_.get()), panels_.data()};
    ConvProblem& p = run.problem;
    if (p.batch * p.filters * p.rows * p.columns == 0) return;
    flatten(p);
    const Cut c = cut(p, static_cast<std::int64_t>(panels_.size()), static_cast<std::int64_t>(call.threads()));
    const std::int64_t groups = up(static_cast<std::int64_t>(panels_.size()), c.panels);
    const std::int64_t across = up(p.columns, c.columns), down = up(p.rows, c.rows);
    const auto tasks = static_cast<std::size_t>(p.batch * down * across * groups);
    const auto task_of = [&](std::int64_t i) {
      const std::int64_t group = i % groups, column = i / groups % across, row = i / groups / across % down;
      const ConvBlock block{i / groups / across / down, row * c.rows, std::min(p.rows, (row + 1) * c.rows),
                            column * c.columns, std::min(p.columns, (column + 1) * c.columns)};
      return DenseTask{block, group * c.panels,
                       std::min(static_cast<std::int64_t>(panels_.size()), (group + 1) * c.panels)};
    };
    std::size_t bytes = 0;
    for (std::int64_t i = 0; i < groups * across * down; ++i) bytes = std::max(bytes, dense_scratch(run, task_of(i)));
    ScratchSlots slots(call, tasks, bytes);
    const auto body = [&](std::size_t i) {
      slots.with_slot(
          [&](std::byte* scratch) { dense_block_avx512(run, task_of(static_cast<std::int64_t>(i)), scratch); });
    };
    if (tasks == 1) return body(0);
    call.parallel(tasks, body);
  }

 private:
  ConvNode node_;
  std::vector<DensePanel> panels_;
  std::shared_ptr<const std::byte> weights_;
};

Verdict accepts(const Call& call) {
  if (Verdict verdict = accepts_conv(call, 2); !verdict) return verdict;
  if (call.attrs.integer("group", 1) != 1) return no("is grouped", call.in(1).name);
  return yes();
}

double cost(const Call& call, const Target& target) {
  return std::max(target.compute(conv_flops(call), 0.75), target.stream(conv_bytes(call))) + 3e-6;
}

std::unique_ptr<Implementation> create(const Call& call, const Target&) { return std::make_unique<Dense>(call); }

}  // namespace

const Kernel conv_dense_avx512 = {
    .op = "Conv",
    .name = "cpu.conv_dense_avx512",
    .needs = Isa::avx512,
    .accepts = accepts,
    .cost = cost,
    .create = create,
};

}  // namespace modelflow::cpu
