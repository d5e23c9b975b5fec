// The kernels of dense convolutions of float32 on AVX-512 and AVX2: panels of filters, packed weights, and how the
// output is cut into tasks.
#include "backends/cpu/conv/dense.h"

#include <algorithm>
#include <cstring>

#include "backends/call_attrs.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/padding.h"
#include "backends/cpu/conv/patches.h"
#include "backends/cpu/conv/problem.h"
#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/ops/work.h"

namespace modelflow::cpu {
namespace {

using Panels = std::vector<DensePanel>;

void add(Panels& panels, std::int64_t vectors, std::int64_t products, std::int64_t width, std::int64_t side) {
  const DensePanel* last = panels.empty() ? nullptr : &panels.back();
  const std::int64_t first = last ? last->first + last->filters() : 0;
  const std::int64_t offset = last ? last->offset + last->filters() * products : 0;
  panels.push_back({first, vectors * width, vectors, width, offset, 0, side});
}

// As many channels side by side as leave room for all filters, or 1: those of a last layer (one for a mask, three for
// colours) fill a few lanes, and a product of a few costs as much as one of all.
std::int64_t side_of_few(std::int64_t filters, std::int64_t channels, std::int64_t lanes) {
  std::int64_t side = lanes;
  while (side > 1 && (lanes / side < filters || channels % side > 0)) side /= 2;
  return side;
}

// Three vectors of 8 lanes per panel with the sums of four pixels fill 16 registers, and those of three pixels keep an
// FMA unit busy too: rows of 7 results are common. Two vectors leave rows of six and no single vector.
Panels split_narrow(std::int64_t filters, std::int64_t products, std::int64_t lanes) {
  Panels panels;
  for (std::int64_t left = ceil_div(filters, lanes); left > 0; left -= panels.back().vectors)
    add(panels, left <= 3 ? left : left == 4 ? 2 : 3, products, lanes, 1);
  return panels;
}

// Three vectors of 16 lanes per panel give the fastest tile (9 pixels x 48 filters), four and two are close. Paired
// vectors where the last full one would be at most half used: 24 filters at the end, or all of 40. Up to 16 filters
// too: two vectors need half as many loads for a product as one (16 to 16 channels, 3 x 3: 100 -> 114 GFLOP/s of 153).
Panels split_wide(std::int64_t filters, std::int64_t products, bool may_pair) {
  Panels panels;
  const bool pair = may_pair && filters % 16 > 0 && filters % 16 <= 8;
  if (may_pair && filters <= 16) {
    add(panels, 2, products, 8, 2);
  } else if (pair && filters > 32 && filters <= 40) {
    add(panels, 3, products, 8, 2);
    add(panels, 2, products, 8, 2);
  } else {
    const std::int64_t full = pair ? (filters - 17) / 16 : (filters + 15) / 16;
    for (std::int64_t left = full; left > 0; left -= panels.back().vectors)
      add(panels, left <= 4 ? left : left % 3 == 1 ? 4 : 3, products, 16, 1);
    if (pair) add(panels, 3, products, 8, 2);
  }
  return panels;
}

// The panels of one group. `channels`: those that may lie side by side; 1 for none.
Panels split(std::int64_t filters, std::int64_t products, std::int64_t channels, std::int64_t lanes) {
  Panels panels;
  const std::int64_t side = side_of_few(filters, channels, lanes);
  if (side > 1)
    add(panels, 1, products, lanes / side, side);
  else
    panels = lanes == 16 ? split_wide(filters, products, channels % 2 == 0) : split_narrow(filters, products, lanes);
  return panels;
}

// The panels of one group for each of `groups`, of `filters` filters that read `depth` channels.
Panels for_groups(Panels one, std::int64_t groups, std::int64_t filters, std::int64_t depth, std::int64_t products) {
  one.back().count = filters - one.back().first;
  const std::int64_t floats = one.back().offset + one.back().filters() * products;
  Panels all;
  for (std::int64_t g = 0; g < groups; ++g)
    for (DensePanel panel : one) {
      panel.first += g * filters;
      panel.offset += g * floats;
      panel.channel = g * depth;
      all.push_back(panel);
    }
  return all;
}

// [M, C, kh, kw] to what DensePanel describes. `planes`: in the order kernel row, channel, kernel column.
void pack(const float* w, const Dims& dims, const DensePanel& panel, bool planes, float* at) {
  const std::int64_t channels = dims[1], columns = dims.back();
  const std::int64_t taps = element_count(dims) / (dims[0] * channels), step = panel.side;
  for (std::int64_t product = 0; product < taps * channels; product += step) {
    std::int64_t tap = product / channels, c = product % channels;
    if (planes) {
      tap = product / (channels * columns) * columns + product % columns;
      c = product / columns % channels;
    }
    for (std::int64_t f = 0; f < panel.filters(); ++f) {
      const float* filter = w + (panel.first + f) * channels * taps;
      for (std::int64_t i = c; i < c + step; ++i) *at++ = f < panel.count ? filter[i * taps + tap] : 0;
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

// How the output is cut: `rows` x `columns` of a block, `panels` of a task.
struct Cut {
  std::int64_t rows, columns, panels;
};

// Pixels into `count` blocks, but none smaller than a few tiles; rows stay whole where they fit. What a block reads
// stays in L2 beside the weights of a panel.
Cut cut_pixels(const DenseRun& run, std::int64_t count) {
  const ConvProblem& p = run.problem;
  Cut c{p.rows, p.columns, 0};
  const auto near = static_cast<double>(run.near_floats), line = static_cast<double>(p.kernel_h);
  const double pixel = static_cast<double>(p.channels) * static_cast<double>(p.kernel_h == 1 ? 1 : p.stride_h) *
                       static_cast<double>(p.kernel_w == 1 ? 1 : p.stride_w);
  const bool wide = static_cast<double>(p.columns) * line * pixel > 2 * near;
  if (p.rows == 1 || wide) {
    const std::int64_t least = std::min<std::int64_t>(p.columns, 36);
    const std::int64_t by_cache = std::max(static_cast<std::int64_t>(near / (pixel * (p.rows == 1 ? 1 : line))), least);
    c.columns = std::clamp(ceil_div(p.columns, p.rows == 1 ? count : 1), least, by_cache);
    c.columns = ceil_div(p.columns, ceil_div(p.columns, c.columns));
    c.rows = 1;
    return c;
  }
  const auto fitting = static_cast<std::int64_t>(near / (static_cast<double>(p.columns) * pixel));
  const std::int64_t by_cache = std::max<std::int64_t>(fitting - p.kernel_h / 2, 1);
  const std::int64_t least = std::min(p.rows, p.kernel_h > 1 ? 2 * p.stride_h : ceil_div(36, p.columns));
  c.rows = std::clamp(ceil_div(p.rows, count), std::min(least, by_cache), by_cache);
  c.rows = ceil_div(p.rows, ceil_div(p.rows, c.rows));
  return c;
}

// More tasks than threads, when the work is worth it: about 1 MFLOP or 64 KiB of weights (some 5 us) each, and three
// such tasks: waking a thread takes as long. Of the ways to get there the one that moves the fewest bytes: every block
// reads all weights, every group of panels all pixels.
Cut cut(const DenseRun& run, std::int64_t panels, std::int64_t threads) {
  const ConvProblem& p = run.problem;
  const auto products = static_cast<double>(p.kernel_h * p.kernel_w * run.depth);
  const auto pixels = static_cast<double>(p.batch * p.rows * p.columns);
  const double flops = 2 * pixels * products * static_cast<double>(p.filters);
  const double worth = std::max(flops / 1e6, products * static_cast<double>(p.filters) / (16 << 10));
  const std::int64_t wanted = conv_tasks(worth, threads, 3);
  Cut best{};
  double least = 0;
  for (std::int64_t count = 1; count <= ceil_div(wanted, p.batch); ++count) {
    Cut c = cut_pixels(run, count);
    const std::int64_t blocks = p.batch * ceil_div(p.rows, c.rows) * ceil_div(p.columns, c.columns);
    const std::int64_t groups = std::clamp<std::int64_t>(ceil_div(wanted, blocks), 1, panels);
    c.panels = ceil_div(panels, groups);
    const double bytes = static_cast<double>(blocks) * products * static_cast<double>(p.filters) +
                         static_cast<double>(groups) * pixels * static_cast<double>(p.channels);
    const bool enough = blocks * groups >= wanted;
    if (best.panels && (bytes >= least || !enough)) continue;
    best = c;
    least = enough ? bytes : 1e300;
  }
  return best;
}

class Dense : public Implementation {
 public:
  Dense(const Call& call, const Target& target, const DenseCode& code)
      : node_(call),
        code_(code),
        near_floats_(static_cast<std::int64_t>(near_bytes(target, 96 << 10))),
        // L2 feeds 9 pixels x 3 vectors of 16 lanes; tiles of 16 registers read a weight twice as often, from L1.
        panel_floats_(code.lanes == 16 ? near_floats_ : target.l1 * 3 / 16) {
    const Tensor& w = *call.in(1).constant;
    const std::int64_t products = w.elements() / w.dims()[0];
    const std::int64_t channels = w.dims()[1], groups = node_.conv.group, filters = w.dims()[0] / groups;
    const bool planes = reads_planes(node_.conv.x_last, channels);
    panels_ =
        for_groups(split(filters, products, planes ? 1 : channels, code.lanes), groups, filters, channels, products);
    const auto bytes =
        static_cast<std::size_t>(panels_.back().offset + panels_.back().filters() * products) * sizeof(float);
    const std::string layout =
        std::string(code.layout) + (planes ? " planes" : "") + " in " + std::to_string(groups) + " groups";
    weights_ = packed_weights(w, layout, bytes, [&](std::byte* to) {
      for (const DensePanel& panel : panels_)
        pack(w.as<float>().data(), w.dims(), panel, planes, reinterpret_cast<float*>(to) + panel.offset);
    });
  }

  void run(Invocation& call) const override {
    DenseRun run{node_.problem(call), reinterpret_cast<const float*>(weights_.get()),
                 panels_.data(),      node_.weights[1],
                 near_floats_,        panel_floats_};
    ConvProblem& p = run.problem;
    if (p.batch * p.filters * p.rows * p.columns == 0) return;
    if (node_.conv.group == 1 && has_patches(p)) {
      p = product_of_patches(p, call, reinterpret_cast<float*>(call.scratch(patch_floats(p) * sizeof(float))));
      run.depth = p.channels;
    }
    flatten(p);
    const Cut c = cut(run, static_cast<std::int64_t>(panels_.size()), static_cast<std::int64_t>(call.threads()));
    const std::int64_t groups = ceil_div(static_cast<std::int64_t>(panels_.size()), c.panels);
    const std::int64_t across = ceil_div(p.columns, c.columns), down = ceil_div(p.rows, c.rows);
    const std::int64_t tasks = p.batch * down * across * groups;
    const auto task_of = [&](std::int64_t i) {
      const std::int64_t group = i % groups, column = i / groups % across, row = i / groups / across % down;
      const ConvBlock block{i / groups / across / down, row * c.rows, std::min(p.rows, (row + 1) * c.rows),
                            column * c.columns, std::min(p.columns, (column + 1) * c.columns)};
      return DenseTask{block, group * c.panels,
                       std::min(static_cast<std::int64_t>(panels_.size()), (group + 1) * c.panels)};
    };
    std::size_t bytes = 0;
    for (std::int64_t i = 0; i < groups * across * down; ++i) bytes = std::max(bytes, code_.scratch(run, task_of(i)));
    run_with_scratch(call, tasks, bytes,
                     [&](std::int64_t i, std::byte* scratch) { code_.block(run, task_of(i), scratch); });
  }

 private:
  ConvNode node_;
  const DenseCode& code_;
  std::int64_t near_floats_, panel_floats_;
  std::vector<DensePanel> panels_;
  std::shared_ptr<const std::byte> weights_;
};

// Padding is multiplied like the image here, and left out in oneDNN: with dilation 12 over 16 x 16 pixels (DeepLab) 3
// times as fast, with dilation 24 10 times, with dilation 4 over 28 x 28 (0.82 inside) 1.25 times (Emerald Rapids).
// Below a million operations there is nothing to gain.
constexpr double kLeastInside = 0.85, kLeastWork = 1e6;

// Channels and filters of a group, below which other kernels make more.
constexpr std::int64_t kLeastInGroup = 8;

Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_conv(call, 2, true); !verdict) return verdict;
  const ops::ConvAttrs conv(call);
  const Dims& weights = call.in(1).constant->dims();
  if (conv.group != 1 && std::min(weights[1], weights[0] / conv.group) < kLeastInGroup)
    return no("has few channels or filters per group", call.in(1).name);
  // It is copied once for each task: windows that overlap have kernels that are better at it than this one.
  const bool single_pixels = conv.kernel == Ints(conv.rank(), 1) && conv.pads == Ints(2 * conv.rank(), 0);
  if (conv.has_pre && !(conv.x_last && single_pixels))
    return no("activates its operand first, and is no product of pixels", call.in(0).name);
  if (conv.group == 1 && ops::conv_flops(call) > kLeastWork && inside_share(call) < kLeastInside)
    return no("reads much padding, which oneDNN leaves out", call.in(0).name);
  return accepts_copy(call);
}

double cost(const Call& call, const Target& target) {
  return std::max(target.compute(ops::conv_flops(call), 0.75), target.stream(conv_bytes(call)));
}

}  // namespace

const Kernel conv_dense_avx512 = {
    .op = "Conv",
    .name = "cpu.conv_dense_avx512",
    .needs = Isa::avx512,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Dense>(call, target, dense_avx512);
    },
};

const Kernel conv_dense_avx2 = {
    .op = "Conv",
    .name = "cpu.conv_dense_avx2",
    .needs = Isa::avx2,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Dense>(call, target, dense_avx2);
    },
};

}  // namespace modelflow::cpu
