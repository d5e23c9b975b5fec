// The kernel of Pointwise programs: one tile of the result after the other, each instruction on tiles in L1, so that
// the tensors are read and written once however long the program is.
#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/pointwise_tiles.h"
#include "backends/cpu/loops/vector_code.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kTile = PointwiseTiles::kTile;
constexpr std::size_t kLeastRun = 64;  // floats that are worth a tile of their own

class Pointwise : public Implementation {
 public:
  Pointwise(const Call& call, const VectorCode& code)
      : inputs_(call.inputs.size()),
        tiles_(ops::parse_program(CallAttrs(call).text("program"), inputs_), inputs_, code.pointwise) {}

  void run(Invocation& call) const override {
    std::vector<std::span<const std::int64_t>> dims;
    PointwiseTiles::Inputs data{};
    for (std::size_t i = 0; i < inputs_; ++i) {
      const View x = call.input(i);
      if (x.dtype != DType::f32) throw Error(ErrorKind::invalid_input, "Pointwise: an input is not float32");
      dims.push_back(x.dims);
      data[i] = static_cast<const float*>(x.data);
    }
    const Broadcast shape("Pointwise", dims);
    auto* y = static_cast<float*>(call.output(0, shape.dims()));
    const std::size_t tiles = (shape.elements() + kTile - 1) / kTile;
    // Some microseconds of work per task.
    const std::size_t tasks = std::min(tiles, std::clamp<std::size_t>(shape.elements() / 8192, 1, call.threads() * 4));
    const auto task = [&](std::size_t i) {
      const std::size_t first = tiles * i / tasks * kTile;
      const std::size_t end = std::min(tiles * (i + 1) / tasks * kTile, shape.elements());
      range(shape, data, y, first, end);
    };
    if (tasks == 1) return task(0);
    if (tasks > 1) call.parallel(tasks, task);
  }

 private:
  void range(const Broadcast& shape, const PointwiseTiles::Inputs& data, float* y, std::size_t first,
             std::size_t end) const {
    alignas(64) PointwiseTiles::Buffers buffers;
    tiles_.prepare(shape, data, buffers);
    PointwiseTiles::Inputs filled{};
    for (std::size_t n = 0; first < end; first += n) {
      n = std::min(kTile, end - first);
      // A tile that ends where operands change needs no gathering.
      if (const std::size_t run = shape.run(first); run < n && run >= kLeastRun) n = run;
      tiles_.run(tiles_.fetch(shape, data, first, n, buffers, &filled), n, buffers, y + first);
    }
  }

  std::size_t inputs_;
  PointwiseTiles tiles_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.empty() || call.inputs.size() > PointwiseTiles::kInputs) return no("takes one to eight inputs");
  for (const Operand& in : call.inputs)
    if (in.dtype != DType::f32) return no("is not float32", in.name);
  try {
    const std::size_t inputs = call.inputs.size();
    const PointwiseTiles tiles(ops::parse_program(CallAttrs(call).text("program"), inputs), inputs,
                               vector_code_any.pointwise);
    return tiles.buffers() <= PointwiseTiles::kTiles ? yes()
                                                     : no("the program needs too many intermediate results at once");
  } catch (const Error& error) {
    return no(error.what());
  }
}

double cost(const Call& call, const Target& target) {
  const double outputs = call.outputs.at(0).shape.known_elements();
  double bytes = 4 * outputs;
  for (const Operand& in : call.inputs) bytes += 4 * in.shape.known_elements();
  const double flops =
      outputs * pointwise_flops(ops::parse_program(CallAttrs(call).text("program"), call.inputs.size()));
  return std::max(target.stream(bytes), target.compute(flops, 0.3));
}

}  // namespace

const Kernel pointwise = {
    .op = "Pointwise",
    .name = "cpu.pointwise",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Pointwise>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
