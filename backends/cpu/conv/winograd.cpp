// The kernel of convolutions by Winograd's method: tiles into frequencies, a product for each of these, and back.
#include "backends/cpu/conv/winograd.h"

#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/problem.h"
#include "backends/cpu/conv/winograd_method.h"
#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/share.h"

namespace modelflow::cpu {
namespace {

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
        method_(*winograd_method(call, code.lanes)),
        weights_(winograd_weights(call, method_, code)) {}

  void run(Invocation& call) const override {
    WinogradRun run{};
    run.problem = node_.problem(call);
    run.form = method_.form;
    run.tile = method_.tile;
    run.plain = static_cast<const float*>(call.input(1).data);
    ConvProblem& p = run.problem;
    run.x_pixel = p.channels, run.y_pixel = p.filters;
    const std::int64_t groups = node_.conv.group;
    p.channels /= groups, p.filters /= groups;
    run.down = ceil_div(p.rows, run.tile.high);
    run.across = ceil_div(p.columns, run.tile.wide);
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
    const std::int64_t blocks = blocks_of(run, ceil_div(2 * threads, groups));
    if (weight_floats(run) <= own_floats_ || run.stacks() / blocks * run.layers >= kManyRows) {
      run_blocks(run, blocks, call);
    } else {
      run_phases(run, call);
    }
  }

 private:
  static std::int64_t near(const Target& target, std::size_t floats) {
    return static_cast<std::int64_t>(near_bytes(target, floats));
  }

  /// Of a group.
  std::int64_t weight_floats(const WinogradRun& run) const {
    const ConvProblem& p = run.problem;
    return run.frequencies() *
           static_cast<std::int64_t>(code_.product.packed_floats(static_cast<std::size_t>(p.kernel_d * p.channels),
                                                                 static_cast<std::size_t>(p.filters)));
  }

  WinogradRun of_group(const WinogradRun& run, std::int64_t group) const {
    WinogradRun one = run;
    ConvProblem& p = one.problem;
    const std::int64_t filter = group * p.filters;
    one.weights = reinterpret_cast<const float*>(weights_.get()) + group * weight_floats(run);
    one.plain += filter * p.channels * p.kernel_d * p.kernel_h * p.kernel_w;
    p.x += group * p.channels, p.y += filter, p.bias += filter;
    if (p.added) p.added += filter;
    if (p.slopes) p.slopes += filter;
    return one;
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

  /// Into how many blocks the stacks are cut: each stays in L2, has whole tiles of the product, and there are
  /// `tasks` of them if these are not too small.
  std::int64_t blocks_of(const WinogradRun& run, std::int64_t tasks) const {
    const std::int64_t stacks = run.stacks(), six = ceil_div(6, run.layers);
    const std::int64_t by_cache = std::max(block_floats_ / stack_floats(run) / six * six, six);
    return std::max(ceil_div(stacks, by_cache), std::min(ceil_div(stacks, ceil_div(kRowsOfTask, run.layers)), tasks));
  }

  /// Small weights, or many rows for each: every task takes some stacks from x to y in its own L2.
  void run_blocks(WinogradRun& run, std::int64_t blocks, Invocation& call) const {
    const std::int64_t stacks = run.stacks(), groups = node_.conv.group;
    const std::size_t bytes = lay_out(run, ceil_div(stacks, blocks));
    run_with_scratch(call, groups * blocks, bytes, [&](std::int64_t task, std::byte* scratch) {
      const std::int64_t block = task / groups;  // whose pixels are near for one group after the other
      const std::int64_t first = stacks * block / blocks, last = stacks * (block + 1) / blocks;
      const WinogradRun one = of_group(run, task % groups);
      const Room room(one, scratch);
      code_.input(one, first, last, room.v, room.far);
      for (std::int64_t f = 0; f < run.frequencies(); ++f) multiply(one, f, last - first, room);
      code_.output(one, first, last, room.products, room.far);
    });
  }

  /// Large weights: all stacks meet each frequency once, so that its weights are read once.
  void run_phases(WinogradRun& run, Invocation& call) const {
    const std::int64_t together = std::clamp<std::int64_t>(phase_floats_ / stack_floats(run), 1, run.stacks());
    const std::size_t bytes = lay_out(run, together);
    std::byte* scratch = static_cast<std::byte*>(call.scratch(bytes));
    for (std::int64_t group = 0; group < node_.conv.group; ++group) {
      const WinogradRun one = of_group(run, group);
      for (std::int64_t first = 0; first < run.stacks(); first += together)
        run_together(one, first, std::min(together, run.stacks() - first), Room(one, scratch), call);
    }
  }

  void run_together(const WinogradRun& run, std::int64_t first, std::int64_t count, const Room& room,
                    Invocation& call) const {
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

  ConvNode node_;
  const WinogradCode& code_;
  GemmBlocks blocks_;
  // Floats that stay near: weights in L2 from block to block; tiles and products of a block, in what L2 has left; those
  // of all tiles that go through the phases together, in a shared L3.
  std::int64_t own_floats_, block_floats_, phase_floats_;
  const WinogradMethod& method_;
  std::shared_ptr<const std::byte> weights_;
};

template <std::size_t lanes>
Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_conv(call, 3); !verdict) return verdict;
  if (CallAttrs(call).text("x_layout") != "NHWC" || CallAttrs(call).text("y_layout") != "NHWC")
    return no("is not channels last on both sides");
  if (!has_winograd_method(call))
    return no("has another window, stride, dilation or grouping than a form of the method");
  return winograd_method(call, lanes) ? yes() : no("the direct convolution takes less work");
}

template <std::size_t lanes>
double cost(const Call& call, const Target& target) {
  const WinogradWork work = winograd_work(call, winograd_method(call, lanes), lanes);
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
