// Reduce: elementwise instructions, a reduction, elementwise instructions, tile by tile in L1, so that the operands are
// read once or, where the result is as large as they are, twice.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/elementwise/pointwise_tiles.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/rows/kernels.h"
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
    for (std::size_t i = 0; mean && i < count; ++i) y[i] /= static_cast<float>(std::max<std::size_t>(n, 1));
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
  PointwiseTiles::Inputs numbers;  ///< inputs of one element that lines between read
  std::size_t outer = 1, n = 1, inner = 1;
  bool full = false;  ///< the result is as large as what is reduced
  float* y = nullptr;
};

/// The buffers of one task.
struct Buffers {
  alignas(64) PointwiseTiles::Buffers before, behind;
  alignas(64) float tile[kTile], block[kTile], reduced[kTile], filled[kTile];
};

/// Which inputs have one element in any case.
std::vector<bool> numbers_of(const Call& call) {
  std::vector<bool> numbers;
  for (const Operand& in : call.inputs) numbers.push_back(in.constant && in.constant->elements() == 1);
  return numbers;
}

class Reduce : public Implementation {
 public:
  Reduce(const Call& call, const VectorCode& code)
      : inputs_(call.inputs.size()),
        reduce_(call, inputs_),
        join_(reduce_.op()),
        loops_(code.pointwise),
        reads_before_(reduce_.reads_before(inputs_)),
        reads_behind_(reduce_.reads_behind(inputs_)),
        numbers_(numbers_of(call)),
        before_(reduce_.before(), inputs_, loops_),
        between_(reduce_.between(inputs_, reduce_.turn(numbers_)), inputs_ + 1, loops_),
        behind_(reduce_.behind(inputs_, reduce_.turn(numbers_)), inputs_ + 1, loops_) {}

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
    Problem p{std::move(before), {behind_, Broadcast("Reduce", behind), data}, {}};
    for (std::size_t i = 0; i < inputs_; ++i)
      if (numbers_[i]) p.numbers[i] = data[i];
    p.outer = product(all.begin(), all.begin() + first);
    p.n = product(all.begin() + first, all.begin() + end);
    p.inner = product(all.begin() + end, all.end());
    const Dims& result = p.behind.shape.dims();
    p.full = reduce_.keepdims && result == all && !(result == rest);
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
    loops_.step(PointwiseOp::mul, from, from, b.tile, n);
    return b.tile;
  }

  /// The lines that need nothing but what was reduced of n numbers, in place.
  void turn(const Problem& p, std::size_t count, Buffers& b) const {
    join_.finish(b.reduced, count, p.n);
    PointwiseTiles::Inputs x = between_.fetch(p.behind.shape, p.numbers, 0, count, b.behind);
    x[inputs_] = b.reduced;
    between_.run(x, count, b.behind, b.block);
    std::copy_n(b.block, count, b.reduced);
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

  /// One long row, or as many short ones as a tile holds.
  void row(const Problem& p, std::size_t r, std::size_t count, Buffers& b, float* reduced) const {
    const auto joined = [&](const float* x, std::size_t n) { return loops_.join(join_.op, join_.first, x, n); };
    if (p.n == 0) return loops_.fill(join_.first, reduced, count);
    if (p.n <= kTile) {
      const float* const x = tile(p, r * p.n, count * p.n, b);
      for (std::size_t i = 0; i < count; ++i) reduced[i] = joined(x + i * p.n, p.n);
      return;
    }
    std::size_t parts = 0;
    for (std::size_t i = 0; i < p.n; i += kTile) {
      const std::size_t n = std::min(kTile, p.n - i);
      b.block[parts++] = joined(tile(p, r * p.n + i, n, b), n);
      if (parts == kTile) b.block[0] = joined(b.block, parts), parts = 1;
    }
    *reduced = joined(b.block, parts);
  }

  void rows(const Problem& p, Invocation& call) const {
    const std::size_t together = std::max<std::size_t>(kTile / std::max<std::size_t>(p.n, 1), 1);
    const std::size_t parts = std::min(tasks_for(p.outer * p.n, call), p.outer);
    share(call, p.outer, parts, [&](std::size_t begin, std::size_t end, std::size_t) {
      Buffers b;
      prepare(p, b);
      for (std::size_t r = begin, count; r < end; r += count) {
        count = std::min({p.full ? together : kTile, kTile, end - r});
        for (std::size_t i = 0; i < count; i += together)
          row(p, r + i, std::min(together, count - i), b, b.reduced + i);
        turn(p, count, b);
        if (!p.full) {
          finish(p, r, count, b.reduced, b);
          continue;
        }
        const std::size_t width = std::min(kTile, p.n);
        for (std::size_t i = 0; i < count; ++i) loops_.fill(b.reduced[i], b.filled + i * width, width);
        for (std::size_t i = 0; i < p.n; i += width)
          finish(p, r * p.n + i, count * std::min(width, p.n - i), b.filled, b);
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

  /// Where they are few, several steps lie side by side in a tile and are joined at the end.
  void column(const Problem& p, std::size_t outer, std::size_t first, std::size_t count, Buffers& b) const {
    const std::size_t together = count == p.inner ? std::min(kTile / count, p.n) : 1;
    const std::size_t longest = 256 * together;  // steps summed in one float before they join the total
    const auto at = [&](std::size_t i) { return (outer * p.n + i) * p.inner + first; };
    const auto wide = [&](std::size_t i, std::size_t end) { return std::min(together, end - i) * count; };
    loops_.fill(join_.first, b.reduced, count);
    for (std::size_t block = 0; block < p.n; block += longest) {
      const std::size_t end = std::min(p.n, block + longest);
      loops_.fill(join_.first, b.block, together * count);
      for (std::size_t i = block; i < end; i += together)
        loops_.step(join_.op, b.block, tile(p, at(i), wide(i, end), b), b.block, wide(i, end));
      for (std::size_t i = 0; i < together; ++i)
        loops_.step(join_.op, b.reduced, b.block + i * count, b.reduced, count);
    }
    turn(p, count, b);
    if (!p.full) return finish(p, outer * p.inner + first, count, b.reduced, b);
    for (std::size_t i = 0; i < together; ++i) std::copy_n(b.reduced, count, b.filled + i * count);
    for (std::size_t i = 0; i < p.n; i += together) finish(p, at(i), wide(i, p.n), b.filled, b);
  }

  std::size_t inputs_;
  ops::ReduceAttrs reduce_;
  Joining join_;
  const PointwiseLoops& loops_;
  std::vector<bool> reads_before_, reads_behind_, numbers_;
  PointwiseTiles before_, between_, behind_;
};

Verdict accepts(const Call& call, const Target&) {
  const std::size_t inputs = call.inputs.size();
  if (inputs == 0 || inputs >= PointwiseTiles::kInputs) return no("takes one to seven inputs");
  for (const Operand& in : call.inputs)
    if (in.dtype != DType::f32) return no("is not float32", in.name);
  try {
    const ops::ReduceAttrs reduce(call, inputs);
    const PointwiseTiles before(reduce.before(), inputs, vector_code_any.pointwise);
    // Without the lines between it needs no fewer buffers.
    const PointwiseTiles behind(reduce.behind(inputs, reduce.line), inputs + 1, vector_code_any.pointwise);
    const bool fit = std::max(before.buffers(), behind.buffers()) <= PointwiseTiles::kTiles;
    return fit ? yes() : no("the program needs too many intermediate results at once");
  } catch (const Error& error) {
    return no(error.what());
  }
}

double cost(const Call& call, const Target& target) {
  const ops::ReduceAttrs reduce(call, call.inputs.size());
  const double outputs = call.outputs.at(0).shape.known_elements();
  double bytes = 4 * outputs, most = outputs;
  for (const Operand& in : call.inputs) {
    bytes += 4 * in.shape.known_elements();
    most = std::max(most, in.shape.known_elements());
  }
  const double flops = most * (4 + pointwise_flops(reduce.before())) +
                       outputs * pointwise_flops(reduce.behind(call.inputs.size(), reduce.line));
  return std::max(target.stream(bytes), target.compute(flops, 0.3));
}

}  // namespace

const Kernel reduce = {
    .op = "Reduce",
    .name = "cpu.reduce",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Reduce>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
