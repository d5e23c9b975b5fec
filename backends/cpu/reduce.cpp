// Elementwise lines, a reduction, elementwise lines: tile by tile in L1, so that the operands are read once or, where
// the result is as large as they are, twice.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/channel_mean.h"
#include "backends/cpu/pointwise_tiles.h"
#include "backends/cpu/share.h"
#include "backends/kernels.h"
#include "backends/ops/reduce_attrs.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kTile = PointwiseTiles::kTile;
using Dims = std::vector<std::int64_t>;

[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string("Reduce: ") + what); }

/// How numbers join.
struct Joining {
  explicit Joining(const std::string& op)
      : op(op == "ReduceMax"   ? PointwiseOp::max
           : op == "ReduceMin" ? PointwiseOp::min
                               : PointwiseOp::add),
        first(op == "ReduceMax"   ? -std::numeric_limits<float>::infinity()
              : op == "ReduceMin" ? std::numeric_limits<float>::infinity()
                                  : 0),
        squares(op == "ReduceL2" || op == "ReduceSumSquare"),
        mean(op == "ReduceMean"),
        root(op == "ReduceL2") {}
  PointwiseOp op;
  float first;
  bool squares, mean, root;

  void finish(float* y, std::size_t count, std::size_t n) const {
    for (std::size_t i = 0; mean && i < count; ++i) y[i] /= static_cast<float>(n);
    for (std::size_t i = 0; root && i < count; ++i) y[i] = std::sqrt(y[i]);
  }
};

/// Lines and the shape that they run over.
struct Part {
  const PointwiseTiles& tiles;
  Broadcast shape;
  PointwiseTiles::Inputs data;
};

/// One call: [outer, n, inner], n being reduced.
struct Problem {
  Part before, behind;
  std::size_t outer = 1, n = 1, inner = 1;
  bool full = false;  ///< the result is as large as what is reduced
  float* y = nullptr;
};

/// The buffers of one task.
struct Buffers {
  alignas(64) PointwiseTiles::Buffers before, behind;
  alignas(64) float tile[kTile], block[kTile], reduced[kTile];
};

class Reduce : public Implementation {
 public:
  Reduce(const Call& call, const PointwiseCode& code)
      : inputs_(call.inputs.size()),
        reduce_(call.attrs, inputs_),
        join_(reduce_.op()),
        code_(code),
        reads_before_(reduce_.reads_before(inputs_)),
        reads_behind_(reduce_.reads_behind(inputs_)),
        before_(reduce_.before(), inputs_, code),
        behind_(reduce_.behind(inputs_), inputs_ + 1, code) {}

  void run(Invocation& call) const override {
    if (call.inputs() != inputs_) fail("wrong number of inputs");
    const Dims none;
    std::vector<std::span<const std::int64_t>> before(inputs_, none), behind(inputs_ + 1, none);
    PointwiseTiles::Inputs data_before{}, data_behind{};
    for (std::size_t i = 0; i < inputs_; ++i) {
      const View x = call.input(i);
      if (x.dtype != DType::f32) fail("an input is not float32");
      const auto* data = static_cast<const float*>(x.data);
      if (reads_before_[i]) before[i] = x.dims, data_before[i] = data;
      if (reads_behind_[i]) behind[i] = x.dims, data_behind[i] = data;
    }
    run({before_, Broadcast("Reduce", before), data_before}, std::move(behind), data_behind, call);
  }

 private:
  void run(Part before, std::vector<std::span<const std::int64_t>> behind, const PointwiseTiles::Inputs& data,
           Invocation& call) const {
    const Dims all = before.shape.dims();
    if (all.size() < reduce_.from_end) fail("the reduced axes lie outside");
    const auto first = static_cast<std::ptrdiff_t>(all.size() - reduce_.from_end);
    const auto end = first + static_cast<std::ptrdiff_t>(reduce_.axes);
    const auto product = [](auto from, auto to) {
      std::size_t count = 1;
      for (; from != to; ++from) count *= static_cast<std::size_t>(*from);
      return count;
    };
    Dims rest = all;
    if (reduce_.keepdims) {
      std::fill(rest.begin() + first, rest.begin() + end, 1);
    } else {
      rest.erase(rest.begin() + first, rest.begin() + end);
    }
    behind[inputs_] = rest;
    Problem p{std::move(before), {behind_, Broadcast("Reduce", behind), data}};
    p.outer = product(all.begin(), all.begin() + first);
    p.n = product(all.begin() + first, all.begin() + end);
    p.inner = product(all.begin() + end, all.end());
    const Dims& result = p.behind.shape.dims();
    p.full = result == all && !(result == rest);
    if (!p.full && !(result == rest)) fail("the result is neither of the reduced shape nor of the whole one");
    p.y = static_cast<float*>(call.output(0, result));
    if (element_count(result) == 0) return;
    p.inner == 1 ? rows(p, call) : columns(p, call);
  }

  /// What is reduced, from this element on.
  const float* tile(const Problem& p, std::size_t first, std::size_t n, Buffers& b) const {
    const PointwiseTiles::Inputs x = p.before.tiles.fetch(p.before.shape, p.before.data, first, n, b.before);
    const bool plain = reduce_.source().input;
    if (!plain) p.before.tiles.run(x, n, b.before, b.tile);
    const float* from = plain ? x[reduce_.source().index] : b.tile;
    if (!join_.squares) return from;
    code_.step(PointwiseOp::mul, from, from, b.tile, n);
    return b.tile;
  }

  void finish(const Problem& p, std::size_t first, std::size_t n, const float* reduced, Buffers& b) const {
    PointwiseTiles::Inputs x = p.behind.tiles.fetch(p.behind.shape, p.behind.data, first, n, b.behind);
    x[inputs_] = reduced;
    p.behind.tiles.run(x, n, b.behind, p.y + first);
  }

  void prepare(const Problem& p, Buffers& b) const {
    p.before.tiles.prepare(p.before.shape, p.before.data, b.before);
    p.behind.tiles.prepare(p.behind.shape, p.behind.data, b.behind);
  }

  /// All numbers of a row, halved until few are left: sums of many stay exact.
  float row(const Problem& p, std::size_t r, Buffers& b) const {
    std::size_t width = 1;
    while (width < std::min(p.n, kTile)) width *= 2;
    std::fill_n(b.block, width, join_.first);
    for (std::size_t i = 0; i < p.n; i += kTile) {
      const std::size_t n = std::min(kTile, p.n - i);
      const float* x = tile(p, r * p.n + i, n, b);
      code_.step(join_.op, b.block, x, b.block, n);
    }
    for (width /= 2; width > 0; width /= 2) code_.step(join_.op, b.block, b.block + width, b.block, width);
    join_.finish(b.block, 1, p.n);
    return b.block[0];
  }

  void rows(const Problem& p, Invocation& call) const {
    const std::size_t parts = std::min(tasks_for(p.outer * p.n, call), p.outer);
    share(call, p.outer, parts, [&](std::size_t begin, std::size_t end, std::size_t) {
      Buffers b;
      prepare(p, b);
      for (std::size_t r = begin; r < end;) {
        const std::size_t count = p.full ? 1 : std::min(kTile, end - r);
        float reduced[kTile];
        for (std::size_t i = 0; i < count; ++i) reduced[i] = row(p, r + i, b);
        if (!p.full) finish(p, r, count, reduced, b);
        if (p.full) {
          std::fill_n(b.reduced, std::min(kTile, p.n), reduced[0]);
          for (std::size_t i = 0; i < p.n; i += kTile) finish(p, r * p.n + i, std::min(kTile, p.n - i), b.reduced, b);
        }
        r += count;
      }
    });
  }

  /// Columns side by side; those of one tile belong to one task.
  void columns(const Problem& p, Invocation& call) const {
    const std::size_t tasks = tasks_for(p.outer * p.n * p.inner, call);
    // As many tiles as tasks, but none narrower than a few cache lines.
    const std::size_t wanted = p.inner * p.outer / std::max<std::size_t>(tasks, 1) / 16 * 16;
    const std::size_t width = std::clamp<std::size_t>(wanted, 64, kTile);
    const std::size_t tiles = (p.inner + width - 1) / width, units = p.outer * tiles;
    share(call, units, std::min(tasks, units), [&](std::size_t begin, std::size_t end, std::size_t) {
      Buffers b;
      prepare(p, b);
      for (std::size_t u = begin; u < end; ++u) {
        const std::size_t first = u % tiles * width;
        column(p, u / tiles, first, std::min(width, p.inner - first), b);
      }
    });
  }

  void column(const Problem& p, std::size_t outer, std::size_t first, std::size_t count, Buffers& b) const {
    constexpr std::size_t kBlock = 256;  // steps summed in one float before they join the total
    const auto at = [&](std::size_t i) { return (outer * p.n + i) * p.inner + first; };
    std::fill_n(b.reduced, count, join_.first);
    for (std::size_t block = 0; block < p.n; block += kBlock) {
      std::fill_n(b.block, count, join_.first);
      for (std::size_t i = block; i < std::min(p.n, block + kBlock); ++i)
        code_.step(join_.op, b.block, tile(p, at(i), count, b), b.block, count);
      code_.step(join_.op, b.reduced, b.block, b.reduced, count);
    }
    join_.finish(b.reduced, count, p.n);
    if (!p.full) return finish(p, outer * p.inner + first, count, b.reduced, b);
    for (std::size_t i = 0; i < p.n; ++i) finish(p, at(i), count, b.reduced, b);
  }

  std::size_t inputs_;
  ops::ReduceAttrs reduce_;
  Joining join_;
  PointwiseCode code_;
  std::vector<bool> reads_before_, reads_behind_;
  PointwiseTiles before_, behind_;
};

Verdict accepts(const Call& call) {
  const std::size_t inputs = call.inputs.size();
  if (inputs == 0 || inputs >= PointwiseTiles::kInputs) return no("takes one to seven inputs");
  for (const Operand& in : call.inputs)
    if (in.dtype != DType::f32) return no("is not float32", in.name);
  try {
    const ops::ReduceAttrs reduce(call.attrs, inputs);
    const PointwiseTiles before(reduce.before(), inputs, pointwise_code_any);
    const PointwiseTiles behind(reduce.behind(inputs), inputs + 1, pointwise_code_any);
    const bool fit = std::max(before.buffers(), behind.buffers()) <= PointwiseTiles::kTiles;
    return fit ? yes() : no("the program needs too many intermediate results at once");
  } catch (const Error& error) {
    return no(error.what());
  }
}

/// `rate`: the share of the peak that activations reach.
double seconds(const Call& call, const Target& target, double rate) {
  const ops::ReduceAttrs reduce(call.attrs, call.inputs.size());
  const double outputs = call.outputs.at(0).shape.known_elements();
  double bytes = 4 * outputs, most = outputs;
  for (const Operand& in : call.inputs) {
    bytes += 4 * in.shape.known_elements();
    most = std::max(most, in.shape.known_elements());
  }
  const double flops =
      most * (4 + pointwise_flops(reduce.before())) + outputs * pointwise_flops(reduce.behind(call.inputs.size()));
  return std::max(target.stream(bytes), target.compute(flops, rate));
}

}  // namespace

const Kernel reduce_avx512 = {
    .op = "Reduce",
    .name = "cpu.reduce_avx512",
    .needs = Isa::avx512,
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return seconds(call, target, 0.3); },
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<Reduce>(call, pointwise_code_avx512);
    },
};

const Kernel reduce_any = {
    .op = "Reduce",
    .name = "cpu.reduce_any",
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return seconds(call, target, 0.02); },
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<Reduce>(call, pointwise_code_any);
    },
};

}  // namespace modelflow::cpu
