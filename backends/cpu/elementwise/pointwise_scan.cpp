// The kernel of PointwiseScan: elements of a step are independent, so each task has a tile of them from the first step
// to the last, and its states stay in L1.
#include <algorithm>

#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/pointwise_tiles.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/ops/pointwise_scan_attrs.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kTile = PointwiseTiles::kTile, kInputs = PointwiseTiles::kInputs;
constexpr std::size_t kLeastTile = 64;  // floats: whole lines, and enough for each line's call
using ops::PointwiseScanAttrs;

std::size_t product(std::span<const std::int64_t> dims) {
  std::size_t all = 1;
  for (const std::int64_t dim : dims) all *= static_cast<std::size_t>(dim);
  return all;
}

/// The extents of a call: sequences are [outer, length, inner], a step [outer, inner].
struct Problem {
  std::size_t outer = 1, length = 0, inner = 1, steps = 0;
  Dims step;
  PointwiseTiles::Inputs sequences{}, others{};
  float* y = nullptr;
  std::vector<float*> last;  ///< states behind the last step

  Problem(const PointwiseScanAttrs& scan, Invocation& call) {
    const std::string op = "PointwiseScan";
    if (call.inputs() != scan.inputs())
      throw Error(ErrorKind::invalid_input, op + ": takes " + std::to_string(scan.inputs()) + " inputs");
    const std::span<const std::int64_t> x = call.input(0).dims;
    const auto axis = static_cast<std::size_t>(scan.axis);
    if (axis >= x.size() || x[axis] < scan.first + scan.steps)
      throw Error(ErrorKind::invalid_input,
                  op + ": x0 is " + text(x) + " for " + std::to_string(scan.first + scan.steps) + " steps");
    outer = product(x.first(axis));
    inner = product(x.subspan(axis + 1));
    length = static_cast<std::size_t>(x[axis]);
    steps = static_cast<std::size_t>(scan.steps);
    step.assign(x.begin(), x.end());
    step.erase(step.begin() + scan.axis);
    for (std::size_t i = 0; i < scan.sequences; ++i)
      sequences[i] = typed_input<float>(call, op, i, x) + static_cast<std::size_t>(scan.first) * inner;
    for (std::size_t i = scan.sequences; i < scan.inputs(); ++i)
      others[i] = typed_input<float>(call, op, i, call.input(i).dims);
    Dims rows = {x.begin(), x.end()};
    rows[axis] = scan.steps;
    y = static_cast<float*>(call.output(0, rows));
    for (std::size_t i = 0; scan.keep_state && i < scan.next.size(); ++i)
      last.push_back(static_cast<float*>(call.output(i + 1, step)));
  }
};

class PointwiseScan : public Implementation {
 public:
  PointwiseScan(const Call& call, const VectorCode& code)
      : scan_(call), written_(scan_.written()), tiles_(scan_.program, scan_.inputs(), code.pointwise, written_) {}

  void run(Invocation& call) const override {
    const Problem p(scan_, call);
    std::vector<std::span<const std::int64_t>> dims(scan_.sequences, p.step);
    for (std::size_t i = scan_.sequences; i < scan_.inputs(); ++i) dims.push_back(call.input(i).dims);
    const Broadcast shape("PointwiseScan", dims);
    if (shape.dims() != p.step)
      throw Error(ErrorKind::invalid_input, "PointwiseScan: an input is larger than a step " + text(p.step));
    if (shape.elements() == 0) return;
    const std::size_t tile = tile_of(p, call.threads()), tiles = (p.inner + tile - 1) / tile;
    const auto task = [&](std::size_t i) {
      const std::size_t begin = i % tiles * tile;
      strip(p, shape, i / tiles, begin, std::min(tile, p.inner - begin));
    };
    if (p.outer * tiles == 1) return task(0);
    call.parallel(p.outer * tiles, task);
  }

 private:
  /// As many elements as give every thread a share, in whole lines.
  static std::size_t tile_of(const Problem& p, std::size_t threads) {
    const std::size_t parts = (threads + p.outer - 1) / p.outer, share = (p.inner + parts - 1) / parts;
    return std::clamp((share + kLeastTile - 1) / kLeastTile * kLeastTile, kLeastTile, kTile);
  }

  /// All steps of n elements, from `begin` on in row `row` of the outer axes.
  void strip(const Problem& p, const Broadcast& shape, std::size_t row, std::size_t begin, std::size_t n) const {
    alignas(64) PointwiseTiles::Buffers buffers;
    alignas(64) float states[2][kInputs][kTile];  // those behind even and behind odd steps
    tiles_.prepare(shape, p.others, buffers);
    PointwiseTiles::Inputs x = tiles_.fetch(shape, p.others, row * p.inner + begin, n, buffers);
    std::array<float*, kInputs + 1> results{};
    for (std::size_t t = 0; t < p.steps; ++t) {
      for (std::size_t i = 0; i < scan_.sequences; ++i) x[i] = p.sequences[i] + (row * p.length + t) * p.inner + begin;
      results[0] = p.y + (row * p.steps + t) * p.inner + begin;
      for (std::size_t i = 1; i < written_.size(); ++i) results[i] = states[t % 2][i - 1];
      tiles_.run(x, n, buffers, std::span(results).first(written_.size()));
      for (std::size_t i = 0; i < scan_.next.size(); ++i) x[scan_.first_state() + i] = results[place(i)];
    }
    for (std::size_t i = 0; i < p.last.size(); ++i)
      std::copy_n(results[place(i)], n, p.last[i] + row * p.inner + begin);
  }

  std::size_t place(std::size_t state) const {
    return static_cast<std::size_t>(std::ranges::find(written_, scan_.next[state]) - written_.begin());
  }

  PointwiseScanAttrs scan_;
  std::vector<std::size_t> written_;
  PointwiseTiles tiles_;
};

Verdict accepts(const Call& call, const Target& target) {
  if (call.inputs.size() > kInputs) return no("takes eight inputs at most");
  if (Verdict v = accepts_float32(call, target); !v) return v;
  try {
    const PointwiseScanAttrs scan(call);
    const PointwiseTiles tiles(scan.program, scan.inputs(), vector_code_any.pointwise, scan.written());
    return tiles.buffers() <= PointwiseTiles::kTiles ? yes()
                                                     : no("the program needs too many intermediate results at once");
  } catch (const Error& error) {
    return no(error.what());
  }
}

double cost(const Call& call, const Target& target) {
  const PointwiseScanAttrs scan(call);
  const double rows = call.outputs.at(0).shape.known_elements();
  const double bytes = 4 * rows * static_cast<double>(1 + scan.sequences);
  return std::max(target.stream(bytes), target.compute(rows * pointwise_flops(scan.program), 0.3));
}

}  // namespace

const Kernel pointwise_scan = {
    .op = "PointwiseScan",
    .name = "cpu.pointwise_scan",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<PointwiseScan>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
