// The kernel of convolutions by Winograd's method, 3x3 over the last two axes: transformed weights, a product for each
// frequency, and when it pays.
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

/// The weights [M, C, taps, 3, 3].
struct Weights {
  std::int64_t filters, channels, taps;

  explicit Weights(const Tensor& w)
      : filters(w.dims()[0]), channels(w.dims()[1]), taps(w.rank() > 4 ? w.dims()[2] : 1) {}
  std::int64_t depth() const { return taps * channels; }
};

/// One frequency of them as [taps, C, M].
void frequency(const float* w, const Weights& of, const double* rows, const double* columns, float* to) {
  std::array<double, 9> factors{};
  for (std::size_t i = 0; i < 9; ++i) factors[i] = rows[i / 3] * columns[i % 3];
  for (std::int64_t f = 0; f < of.filters; ++f) {
    for (std::int64_t c = 0; c < of.channels; ++c) {
      for (std::int64_t tap = 0; tap < of.taps; ++tap, w += 9) {
        double sum = 0;
        for (std::size_t i = 0; i < 9; ++i) sum += factors[i] * static_cast<double>(w[i]);
        to[(tap * of.channels + c) * of.filters + f] = static_cast<float>(sum);
      }
    }
  }
}

std::shared_ptr<const std::byte> transformed(const Tensor& w, std::int64_t m, const WinogradCode& code) {
  const Weights of(w);
  const auto filters = static_cast<std::size_t>(of.filters), depth = static_cast<std::size_t>(of.depth());
  const F32Code& product = code.product;
  const std::size_t floats = product.packed_floats(depth, filters), n = static_cast<std::size_t>(m) + 2;
  const std::string layout = std::string(code.layout) + " m" + std::to_string(m);
  return packed_weights(w, layout, n * n * floats * sizeof(float), [&](std::byte* to) {
    const double(*matrix)[3] = m == 4 ? kFour : kTwo;
    std::vector<float> plain(filters * depth);
    for (std::size_t i = 0; i < n * n; ++i) {
      frequency(w.as<float>().data(), of, matrix[i / n], matrix[i % n], plain.data());
      product.pack_b(plain.data(), filters, false, depth, filters, 0, product.panels(filters),
                     reinterpret_cast<float*>(to) + i * floats);
    }
  });
}

/// What one way to compute the convolution costs, in multiplications at the speed of a good matrix product.
struct Work {
  double products, weight_bytes, transforms;
  double total() const { return products + 4 * weight_bytes + transforms; }
};

/// Taps along the first of three axes that find more than padding: of causal convolutions of one frame, the last.
std::int64_t taps_of(const Call& call) {
  const ops::ConvAttrs conv(call);
  if (conv.rank() < 3) return 1;
  const Shape& x = call.in(0).shape;
  if (!x.has_rank() || !x[1].known()) return conv.kernel[0];
  const std::int64_t depth = x[1].value();
  return taps_inside(conv.pads[0], conv.kernel[0], depth, 0, std::max<std::int64_t>(conv.extent(0, depth), 1)).count();
}

/// Work of tiles of m x m results, or of the direct convolution (0), on vectors of `lanes`. A byte of weights from
/// memory or L3 takes the time of about 4 multiplications with additions, as far as it is not hidden behind them
/// (fitted to the layers of ResNet-50 on Cascade Lake). A transform moves its numbers through L1 and L2, which wider
/// vectors make little faster; with these weights all of 70 layers of ResNet, HRNet, UNets, RepVGG and YOLO go the
/// faster way but one, which loses 6 % (Zen 5, both widths).
Work work_of(const Call& call, std::int64_t m, std::size_t lanes) {
  const Weights w(*call.in(1).constant);
  const Shape& y = call.outputs.at(0).shape;
  const auto extent = [&](std::size_t axis, std::int64_t otherwise) {
    return static_cast<double>(y.has_rank() && y[axis].known() ? y[axis].value() : otherwise);
  };
  const bool deep = call.in(1).constant->rank() > 4;
  const double planes = deep ? extent(1, typical::kMap) : 1, batch = extent(0, typical::kBatch) * planes;
  const double high = extent(1u + deep, typical::kMap), wide = extent(2u + deep, typical::kMap);
  const auto filters = static_cast<double>(w.filters), channels = static_cast<double>(w.channels);
  const auto in_vectors = [width = static_cast<double>(lanes)](double n) { return std::ceil(n / width) * width; };
  const auto depth = static_cast<double>(taps_of(call)) * channels;
  if (m == 0) return {9 * batch * high * wide * filters * depth, 4 * 9 * filters * depth, 0};
  const auto step = static_cast<double>(m), n = step + 2;
  const double tiles = batch * std::ceil(high / step) * std::ceil(wide / step);
  const double transform = 6 + static_cast<double>(lanes) / 2;
  return {n * n * tiles * in_vectors(filters) * depth, 4 * n * n * filters * depth,
          n * n * tiles * (in_vectors(filters) + in_vectors(channels)) * transform};
}

/// The transformed weights are kept in memory, four times as large as the plain ones with m = 4 and 1.8 times with m =
/// 2: the former for up to 512 x 512 of them, where results take two thirds of the time.
constexpr double kMostBytes = 40e6;

/// 4 or 2, or 0 when neither is clearly better than the direct convolution.
std::int64_t best_size(const Call& call, std::size_t lanes) {
  std::int64_t best = 0;
  const Weights w(*call.in(1).constant);
  const double bytes = 4 * 36 * static_cast<double>(w.filters * w.depth());
  double least = 0.9 * work_of(call, 0, lanes).total();
  for (const std::int64_t m : {2, 4}) {
    const Work work = work_of(call, m, lanes);
    if (work.total() >= least || (m == 4 && bytes > kMostBytes)) continue;
    least = work.total();
    best = m;
  }
  return best;
}

/// For so many rows weights may come from L3 again and again: a number for each is read in the time of that many
/// multiplications.
constexpr std::int64_t kManyRows = 32;
/// Rows that a task has at least: two tiles of the product.
constexpr std::int64_t kRowsOfTask = 12;

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
    // Tiles a multiple of 2 KiB apart would share few sets of the L1 cache; those of several planes are one row of a
    // product.
    run.pixel = p.kernel_d == 1 && p.channels % 512 == 0 ? p.channels + 16 : p.channels;
    const std::int64_t places = p.batch * run.down * run.across;
    if (places * p.planes * p.filters == 0) return;
    // Stacks for all threads, as long as they have the rows of a task; each stays in L2.
    const auto threads = static_cast<std::int64_t>(call.threads());
    const std::int64_t by_threads = ceil_div(p.planes, threads > 1 ? ceil_div(2 * threads, places) : 1);
    const std::int64_t by_cache = block_floats_ / (run.frequencies() * (run.pixel + p.filters));
    const std::int64_t most = std::max(by_threads, std::min(p.planes, kRowsOfTask));
    run.deep = ceil_div(p.planes, std::clamp<std::int64_t>(by_cache, 1, most));
    run.layers = ceil_div(p.planes, run.deep);
    const auto floats = static_cast<std::int64_t>(code_.product.packed_floats(
        static_cast<std::size_t>(p.kernel_d * p.channels), static_cast<std::size_t>(p.filters)));
    const std::int64_t blocks = blocks_of(run, threads);
    if (run.frequencies() * floats <= own_floats_ || run.stacks() / blocks * run.layers >= kManyRows) {
      run_blocks(run, blocks, call);
    } else {
      run_phases(run, call);
    }
  }

 private:
  static std::int64_t near(const Target& target, std::size_t floats) {
    return static_cast<std::int64_t>(near_bytes(target, floats));
  }

  /// Of a stack of tiles and its products, and whether they are far.
  static std::int64_t stack_floats(const WinogradRun& run) {
    return run.frequencies() * (run.slices() * run.pixel + run.layers * run.problem.filters) + run.slices();
  }

  /// Sets the steps of so many stacks and gives the bytes for them. An odd number of cache lines from one frequency to
  /// the next: a tile writes to all 36 of them, which even steps would put into few sets of the L1 cache.
  static std::size_t lay_out(WinogradRun& run, std::int64_t stacks) {
    const auto odd_lines = [](std::int64_t floats) { return (ceil_div(floats, 16) | 1) * 16; };
    run.v_step = odd_lines(stacks * run.slices() * run.pixel);
    run.products_step = odd_lines(stacks * run.layers * run.problem.filters);
    return static_cast<std::size_t>(run.frequencies() * (run.v_step + run.products_step)) * sizeof(float) +
           static_cast<std::size_t>(stacks * run.slices());
  }

  /// Where tiles of some stacks, their products and what is far lie.
  struct Room {
    float *v, *products;
    bool* far;

    Room(const WinogradRun& run, std::byte* memory)
        : v(reinterpret_cast<float*>(memory)),
          products(v + run.frequencies() * run.v_step),
          far(reinterpret_cast<bool*>(products + run.frequencies() * run.products_step)) {}
    Room(const WinogradRun& run, const Room& all, std::int64_t stack)
        : v(all.v + stack * run.slices() * run.pixel),
          products(all.products + stack * run.layers * run.problem.filters),
          far(all.far + stack * run.slices()) {}
  };

  /// The products of some stacks for a frequency: how many, their rows, and floats from one to the next. A row is what
  /// one tile of y sees, the tiles of its planes of x: one begins a tile behind the other within a stack, or they are
  /// the tiles of one layer of all stacks.
  struct Rows {
    std::int64_t products, rows, a_step, lda, c_step, ldc;

    Rows(const WinogradRun& run, std::int64_t count)
        : products(count),
          rows(run.layers),
          a_step(run.slices() * run.pixel),
          lda(run.pixel),
          c_step(run.layers * run.problem.filters),
          ldc(run.problem.filters) {
      if (run.problem.kernel_d == 1) {  // all stacks lie one behind the other
        rows *= count, products = 1;
      } else if (rows < count) {
        std::swap(products, rows), std::swap(a_step, lda), std::swap(c_step, ldc);
      }
    }
  };

  void multiply(const WinogradRun& run, std::int64_t frequency, std::int64_t count, const Room& room) const {
    const F32Code& product = code_.product;
    const ConvProblem& p = run.problem;
    const Rows all(run, count);
    const Taps taps = run.taps();
    const auto depth = static_cast<std::size_t>(p.kernel_d * p.channels);
    Gemm g;
    g.blocks = blocks_;
    g.m = static_cast<std::size_t>(all.rows);
    g.n = static_cast<std::size_t>(p.filters);
    g.k = static_cast<std::size_t>(taps.count() * p.channels);
    g.lda = static_cast<std::size_t>(all.lda), g.ldc = static_cast<std::size_t>(all.ldc);
    g.ldb = product.panel;
    g.panel = product.panel * depth;
    g.a = room.v + frequency * run.v_step + taps.first * p.channels;
    g.b = run.weights + static_cast<std::size_t>(frequency) * product.packed_floats(depth, g.n) +
          static_cast<std::size_t>(taps.first * p.channels) * product.panel;
    g.c = room.products + frequency * run.products_step;
    for (std::int64_t i = 0; i < all.products; ++i, g.a += all.a_step, g.c += all.c_step)
      product.gemm(g, 0, g.m, 0, g.n, nullptr);
  }

  /// Into how many blocks the stacks are cut: each stays in L2, has whole tiles of the product, and some for each
  /// thread.
  std::int64_t blocks_of(const WinogradRun& run, std::int64_t threads) const {
    const std::int64_t stacks = run.stacks(), six = ceil_div(6, run.layers);
    const std::int64_t by_cache = std::max(block_floats_ / stack_floats(run) / six * six, six);
    return std::max(ceil_div(stacks, by_cache),
                    std::min(ceil_div(stacks, ceil_div(kRowsOfTask, run.layers)), 2 * threads));
  }

  /// Small weights, or many rows for each: every task takes some stacks from x to y in its own L2.
  void run_blocks(WinogradRun& run, std::int64_t blocks, Invocation& call) const {
    const std::int64_t stacks = run.stacks();
    run_with_scratch(call, blocks, lay_out(run, ceil_div(stacks, blocks)), [&](std::int64_t i, std::byte* scratch) {
      const std::int64_t first = stacks * i / blocks, last = stacks * (i + 1) / blocks;
      const Room room(run, scratch);
      code_.input(run, first, last, room.v, room.far);
      for (std::int64_t f = 0; f < run.frequencies(); ++f) multiply(run, f, last - first, room);
      code_.output(run, first, last, room.products, room.far);
    });
  }

  /// Large weights: all stacks meet each frequency once, so that its weights are read once.
  void run_phases(WinogradRun& run, Invocation& call) const {
    const std::int64_t together = std::clamp<std::int64_t>(phase_floats_ / stack_floats(run), 1, run.stacks());
    const std::size_t bytes = lay_out(run, together);
    const Room room(run, static_cast<std::byte*>(call.scratch(bytes)));
    for (std::int64_t first = 0; first < run.stacks(); first += together) {
      const std::int64_t count = std::min(together, run.stacks() - first);
      const auto stacks = static_cast<std::size_t>(count), parts = std::min(stacks, call.threads() * 4);
      share(call, stacks, parts, [&](auto begin, auto end, auto) {
        const auto at = static_cast<std::int64_t>(begin), last = static_cast<std::int64_t>(end);
        const Room part(run, room, at);
        code_.input(run, first + at, first + last, part.v, part.far);
      });
      call.parallel(static_cast<std::size_t>(run.frequencies()),
                    [&](std::size_t f) { multiply(run, static_cast<std::int64_t>(f), count, room); });
      share(call, stacks, parts, [&](auto begin, auto end, auto) {
        const auto at = static_cast<std::int64_t>(begin), last = static_cast<std::int64_t>(end);
        const Room part(run, room, at);
        code_.output(run, first + at, first + last, part.products, part.far);
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
  if (Verdict verdict = accepts_conv(call, 3); !verdict) return verdict;
  const Dims& w = call.in(1).constant->dims();
  const std::size_t last = w.size() - 1;
  if (w.size() < 4 || w[last] != 3 || w[last - 1] != 3) return no("is not 3x3", call.in(1).name);
  if (Weights(*call.in(1).constant).taps > kMostWinogradTaps) return no("sees many planes", call.in(1).name);
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
