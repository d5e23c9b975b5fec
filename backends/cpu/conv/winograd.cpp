// The kernel of 3x3 convolutions by Winograd's method: transformed weights, a product for each frequency, and when it
// pays.
#include "backends/cpu/conv/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "backends/call_attrs.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/problem.h"
#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/weight_cache.h"
#include "src/core/unknown_extents.h"

namespace modelflow::cpu {
namespace {

constexpr double kTwo[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
constexpr double kFour[6][3] = {{1. / 4, 0, 0},
                                {-1. / 6, -1. / 6, -1. / 6},
                                {-1. / 6, 1. / 6, -1. / 6},
                                {1. / 24, 1. / 12, 1. / 6},
                                {1. / 24, -1. / 12, 1. / 6},
                                {0, 0, 1}};

/// One frequency of weights [M, C, 3, 3] as [C, M].
void frequency(const float* w, std::int64_t filters, std::int64_t channels, const double* rows, const double* columns,
               float* to) {
  std::array<double, 9> factors{};
  for (std::size_t i = 0; i < 9; ++i) factors[i] = rows[i / 3] * columns[i % 3];
  for (std::int64_t f = 0; f < filters; ++f) {
    for (std::int64_t c = 0; c < channels; ++c, w += 9) {
      double sum = 0;
      for (std::size_t i = 0; i < 9; ++i) sum += factors[i] * static_cast<double>(w[i]);
      to[c * filters + f] = static_cast<float>(sum);
    }
  }
}

std::shared_ptr<const std::byte> transformed(const Tensor& w, std::int64_t m, const WinogradCode& code) {
  const auto filters = static_cast<std::size_t>(w.dims()[0]), channels = static_cast<std::size_t>(w.dims()[1]);
  const F32Code& product = code.product;
  const std::size_t floats = product.packed_floats(channels, filters), n = static_cast<std::size_t>(m) + 2;
  const std::string layout = std::string(code.layout) + " m" + std::to_string(m);
  return packed_weights(w, layout, n * n * floats * sizeof(float), [&](std::byte* to) {
    const double(*matrix)[3] = m == 4 ? kFour : kTwo;
    std::vector<float> plain(filters * channels);
    for (std::size_t i = 0; i < n * n; ++i) {
      frequency(w.as<float>().data(), w.dims()[0], w.dims()[1], matrix[i / n], matrix[i % n], plain.data());
      product.pack_b(plain.data(), filters, false, channels, filters, 0, product.panels(filters),
                     reinterpret_cast<float*>(to) + i * floats);
    }
  });
}

/// What one way to compute the convolution costs, in multiplications at the speed of a good matrix product.
struct Work {
  double products, weight_bytes, transforms;
  double total() const { return products + 4 * weight_bytes + transforms; }
};

/// Work of tiles of m x m results, or of the direct convolution (0), on vectors of `lanes`. A byte of weights from
/// memory or L3 takes the time of about 4 multiplications with additions, as far as it is not hidden behind them
/// (fitted to the layers of ResNet-50 on Cascade Lake). A transform moves its numbers through L1 and L2, which wider
/// vectors make little faster; with these weights all of 70 layers of ResNet, HRNet, UNets, RepVGG and YOLO go the
/// faster way but one, which loses 6 % (Zen 5, both widths).
Work work_of(const Call& call, std::int64_t m, std::size_t lanes) {
  const Dims& w = call.in(1).constant->dims();
  const Shape& y = call.outputs.at(0).shape;
  const auto extent = [&](std::size_t axis, std::int64_t otherwise) {
    return static_cast<double>(y.has_rank() && y[axis].known() ? y[axis].value() : otherwise);
  };
  const double batch = extent(0, typical::kBatch), high = extent(1, typical::kMap), wide = extent(2, typical::kMap);
  const auto filters = static_cast<double>(w[0]), channels = static_cast<double>(w[1]);
  if (m == 0) return {9 * batch * high * wide * filters * channels, 4 * 9 * filters * channels, 0};
  const auto step = static_cast<double>(m), n = step + 2;
  const double tiles = batch * std::ceil(high / step) * std::ceil(wide / step);
  const auto in_vectors = [width = static_cast<double>(lanes)](double n) { return std::ceil(n / width) * width; };
  const double transform = 6 + static_cast<double>(lanes) / 2;
  return {n * n * tiles * in_vectors(filters) * channels, 4 * n * n * filters * channels,
          n * n * tiles * (in_vectors(filters) + in_vectors(channels)) * transform};
}

/// The transformed weights are kept in memory, four times as large as the plain ones with m = 4 and 1.8 times with m =
/// 2: the former for up to 512 x 512 of them, where results take two thirds of the time.
constexpr double kMostBytes = 40e6;

/// 4 or 2, or 0 when neither is clearly better than the direct convolution.
std::int64_t best_size(const Call& call, std::size_t lanes) {
  std::int64_t best = 0;
  double least = 0.9 * work_of(call, 0, lanes).total();
  for (const std::int64_t m : {2, 4}) {
    const Work work = work_of(call, m, lanes);
    if (work.total() >= least || (m == 4 && work.weight_bytes > kMostBytes)) continue;
    least = work.total();
    best = m;
  }
  return best;
}

class Winograd : public Implementation {
 public:
  Winograd(const Call& call, const Target& target, const WinogradCode& code)
      : node_(call),
        code_(code),
        blocks_(code.product.blocks(target)),
        own_floats_(near(target, 200 << 10)),
        block_floats_(near(target, 150 << 10)),
        phase_floats_(std::min<std::int64_t>(target.l3 / 8, 4 << 20)),
        m_(best_size(call, code.lanes)) {
    weights_ = transformed(*call.in(1).constant, m_, code);
  }

  void run(Invocation& call) const override {
    WinogradRun run{};
    run.problem = node_.problem(call);
    run.m = m_;
    run.weights = reinterpret_cast<const float*>(weights_.get());
    run.plain = static_cast<const float*>(call.input(1).data);
    const ConvProblem& p = run.problem;
    run.down = ceil_div(p.rows, m_);
    run.across = ceil_div(p.columns, m_);
    // Tiles a multiple of 2 KiB apart would share few sets of the L1 cache.
    run.pixel = p.channels % 512 == 0 ? p.channels + 16 : p.channels;
    if (run.tiles() == 0 || p.filters == 0) return;
    const auto floats = static_cast<std::int64_t>(
        code_.product.packed_floats(static_cast<std::size_t>(p.channels), static_cast<std::size_t>(p.filters)));
    if (run.frequencies() * floats <= own_floats_) {
      run_blocks(run, call);
    } else {
      run_phases(run, call);
    }
  }

 private:
  static std::int64_t near(const Target& target, std::size_t floats) {
    return static_cast<std::int64_t>(near_bytes(target, floats));
  }

  /// Of a tile and its products, and which results are not made of them.
  static std::int64_t tile_floats(const WinogradRun& run) {
    return run.frequencies() * (run.pixel + run.problem.filters) + 1;
  }

  /// Sets the steps of `rows` tiles and gives the bytes for them. An odd number of cache lines from one frequency to
  /// the next: a tile writes to all 36 of them, which even steps would put into few sets of the L1 cache.
  static std::size_t lay_out(WinogradRun& run, std::int64_t rows) {
    const auto odd_lines = [](std::int64_t floats) { return (ceil_div(floats, 16) | 1) * 16; };
    run.v_step = odd_lines(rows * run.pixel);
    run.products_step = odd_lines(rows * run.problem.filters);
    return static_cast<std::size_t>(run.frequencies() * (run.v_step + run.products_step) + rows) * sizeof(float);
  }

  /// Where tiles, their products and what is apart lie.
  struct Room {
    float *v, *products;
    std::uint32_t* apart;

    Room(const WinogradRun& run, std::byte* memory)
        : v(reinterpret_cast<float*>(memory)),
          products(v + run.frequencies() * run.v_step),
          apart(reinterpret_cast<std::uint32_t*>(products + run.frequencies() * run.products_step)) {}
  };

  /// The products of `count` tiles for a frequency.
  void multiply(const WinogradRun& run, std::int64_t frequency, std::int64_t count, const Room& room) const {
    const F32Code& product = code_.product;
    const ConvProblem& p = run.problem;
    Gemm g;
    g.blocks = blocks_;
    g.m = static_cast<std::size_t>(count);
    g.n = static_cast<std::size_t>(p.filters);
    g.k = static_cast<std::size_t>(p.channels);
    g.a = room.v + frequency * run.v_step;
    g.lda = static_cast<std::size_t>(run.pixel);
    g.b = run.weights + static_cast<std::size_t>(frequency) * product.packed_floats(g.k, g.n);
    g.ldb = product.panel;
    g.panel = product.panel * g.k;
    g.c = room.products + frequency * run.products_step;
    g.ldc = g.n;
    product.gemm(g, 0, g.m, 0, g.n, nullptr);
  }

  /// Small weights: every task takes some tiles from x to y in its own L2.
  void run_blocks(WinogradRun& run, Invocation& call) const {
    const auto threads = static_cast<std::int64_t>(call.threads());
    const std::int64_t by_cache = std::max<std::int64_t>(block_floats_ / tile_floats(run) / 6 * 6, 6);
    const std::int64_t blocks =
        std::max(ceil_div(run.tiles(), by_cache), std::min(ceil_div(run.tiles(), 12), 2 * threads));
    const std::int64_t rows = ceil_div(run.tiles(), blocks);
    run_with_scratch(call, blocks, lay_out(run, rows), [&](std::int64_t i, std::byte* scratch) {
      const std::int64_t first = run.tiles() * i / blocks, last = run.tiles() * (i + 1) / blocks;
      const Room room(run, scratch);
      code_.input(run, first, last, room.v, room.apart);
      for (std::int64_t f = 0; f < run.frequencies(); ++f) multiply(run, f, last - first, room);
      code_.output(run, first, last, room.products, room.apart);
    });
  }

  /// Large weights: all tiles meet each frequency once, so that its weights are read once.
  void run_phases(WinogradRun& run, Invocation& call) const {
    const std::int64_t rows = std::clamp<std::int64_t>(phase_floats_ / tile_floats(run), 1, run.tiles());
    const std::size_t bytes = lay_out(run, rows);
    const Room room(run, static_cast<std::byte*>(call.scratch(bytes)));
    for (std::int64_t first = 0; first < run.tiles(); first += rows) {
      const std::int64_t count = std::min(rows, run.tiles() - first);
      const auto tiles = static_cast<std::size_t>(count), parts = std::min(tiles, call.threads() * 4);
      share(call, tiles, parts, [&](auto begin, auto end, auto) {
        const auto at = static_cast<std::int64_t>(begin), last = static_cast<std::int64_t>(end);
        code_.input(run, first + at, first + last, room.v + at * run.pixel, room.apart + at);
      });
      call.parallel(static_cast<std::size_t>(run.frequencies()),
                    [&](std::size_t f) { multiply(run, static_cast<std::int64_t>(f), count, room); });
      share(call, tiles, parts, [&](auto begin, auto end, auto) {
        const auto at = static_cast<std::int64_t>(begin), last = static_cast<std::int64_t>(end);
        code_.output(run, first + at, first + last, room.products + at * run.problem.filters, room.apart + at);
      });
    }
  }

  ConvNode node_;
  const WinogradCode& code_;
  GemmBlocks blocks_;
  // Floats that stay near: weights in L2 from block to block; tiles and products of a block, in what L2 has left; those
  // of all tiles that go through the phases together, in a shared L3.
  std::int64_t own_floats_, block_floats_, phase_floats_;
  std::int64_t m_;
  std::shared_ptr<const std::byte> weights_;
};

template <std::size_t lanes>
Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_conv(call, 2); !verdict) return verdict;
  const Dims& w = call.in(1).constant->dims();
  if (w.size() != 4 || w[2] != 3 || w[3] != 3) return no("is not 3x3", call.in(1).name);
  if (CallAttrs(call).integer("group") != 1) return no("is grouped", call.in(1).name);
  for (const char* name : {"strides", "dilations"}) {
    for (const std::int64_t value : CallAttrs(call).ints(name))
      if (value != 1) return no(std::string(name) + " are not 1");
  }
  if (CallAttrs(call).text("x_layout") != "NHWC" || CallAttrs(call).text("y_layout") != "NHWC")
    return no("is not channels last on both sides");
  return best_size(call, lanes) ? yes() : no("the direct convolution takes less work");
}

template <std::size_t lanes>
double cost(const Call& call, const Target& target) {
  const Work work = work_of(call, best_size(call, lanes), lanes);
  return std::max(target.compute(2 * (work.products + work.transforms), 0.75), target.stream(conv_bytes(call)));
}

}  // namespace

const Kernel conv_winograd_avx512 = {
    .op = "Conv",
    .name = "cpu.conv_winograd_avx512",
    .needs = Isa::avx512,
    .accepts = accepts<16>,
    .cost = cost<16>,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Winograd>(call, target, winograd_avx512);
    },
};

const Kernel conv_winograd_avx2 = {
    .op = "Conv",
    .name = "cpu.conv_winograd_avx2",
    .needs = Isa::avx2,
    .accepts = accepts<8>,
    .cost = cost<8>,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Winograd>(call, target, winograd_avx2);
    },
};

}  // namespace modelflow::cpu
