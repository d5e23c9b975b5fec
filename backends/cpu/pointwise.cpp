// A pointwise program, one tile of the result after the other: every line reads and writes tiles in L1, so the tensors
// are read and written once however long the program is.
#include "backends/cpu/pointwise.h"

#include <algorithm>
#include <array>
#include <map>

#include "backends/cpu/activation.h"
#include "backends/cpu/broadcast.h"
#include "backends/cpu/pointwise_loops.h"
#include "backends/kernels.h"
#include "backends/ops/pointwise_program.h"

namespace modelflow::cpu {

const PointwiseStep pointwise_step_any = pointwise_step;

namespace {

constexpr std::size_t kTile = 512, kTiles = 14;  // floats, buffers: 28 KiB of a core's 32
constexpr std::size_t kInputs = 8;

using Activate = void (*)(const ActivationSpec&, const float*, float*, std::size_t);

const std::map<std::string_view, PointwiseOp> kOps = {
    {"Add", PointwiseOp::add},   {"Sub", PointwiseOp::sub},
    {"Mul", PointwiseOp::mul},   {"Div", PointwiseOp::div},
    {"Max", PointwiseOp::max},   {"Min", PointwiseOp::min},
    {"Neg", PointwiseOp::neg},   {"Abs", PointwiseOp::abs},
    {"Sqrt", PointwiseOp::sqrt}, {"Reciprocal", PointwiseOp::reciprocal},
    {"Log", PointwiseOp::log}};

/// One line: reads operands and tiles, writes tile `to`; the last line writes the result itself.
struct Step {
  PointwiseOp op;
  ActivationSpec activation;
  ops::Instruction::Source a, b;  // of tiles, the index is that of the buffer
  std::size_t to = 0;
};

/// Lines with buffers: a tile is free again behind its last reader. Buffers start behind those of the inputs.
std::vector<Step> plan(const std::vector<ops::Instruction>& program, std::size_t inputs, std::size_t& buffers) {
  std::vector<std::size_t> last(program.size()), place(program.size()), free;
  for (std::size_t i = 0; i < program.size(); ++i)
    for (const auto& from : program[i].from)
      if (!from.input) last[from.index] = i;
  std::vector<Step> steps;
  buffers = inputs;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const ops::Instruction& line = program[i];
    const auto known = kOps.find(line.op);
    Step step{known == kOps.end() ? PointwiseOp::activation : known->second, {}, line.from[0], line.from.back()};
    if (step.op == PointwiseOp::activation) step.activation = activation_of({{"activation", line.op}});
    for (auto* source : {&step.a, &step.b}) {
      if (source->input) continue;
      const std::size_t index = source->index;
      source->index = place[index];
      if (last[index] == i && std::find(free.begin(), free.end(), place[index]) == free.end())
        free.push_back(place[index]);  // a line may write where it reads
    }
    if (free.empty()) free.push_back(buffers++);
    step.to = place[i] = free.back();
    free.pop_back();
    steps.push_back(step);
  }
  return steps;
}

class Pointwise : public Implementation {
 public:
  Pointwise(const Call& call, PointwiseStep step, Activate activate) : step_(step), activate_(activate) {
    inputs_ = call.inputs.size();
    std::size_t buffers = 0;
    steps_ = plan(ops::parse_program(call.attrs.text("program"), inputs_), inputs_, buffers);
  }

  void run(Invocation& call) const override {
    std::vector<std::span<const std::int64_t>> dims;
    std::array<const float*, kInputs> data{};
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
  void range(const Broadcast& shape, std::array<const float*, kInputs> data, float* y, std::size_t first,
             std::size_t end) const {
    alignas(64) float buffers[kTiles][kTile];
    for (std::size_t i = 0; i < inputs_; ++i)
      if (shape.single(i)) std::fill_n(buffers[i], kTile, *data[i]);
    for (; first < end; first += kTile) {
      const std::size_t n = std::min(kTile, end - first);
      std::array<const float*, kInputs> x{};
      for (std::size_t i = 0; i < inputs_; ++i) {
        x[i] = shape.whole(i) ? data[i] + first : buffers[i];
        if (!shape.whole(i) && !shape.single(i)) shape.gather(i, data[i], first, n, buffers[i]);
      }
      for (const Step& step : steps_) {
        const float* a = step.a.input ? x[step.a.index] : buffers[step.a.index];
        const float* b = step.b.input ? x[step.b.index] : buffers[step.b.index];
        float* to = &step == &steps_.back() ? y + first : buffers[step.to];
        if (step.op == PointwiseOp::activation) {
          activate_(step.activation, a, to, n);
        } else {
          step_(step.op, a, b, to, n);
        }
      }
    }
  }

  std::size_t inputs_ = 0;
  std::vector<Step> steps_;
  PointwiseStep step_;
  Activate activate_;
};

Verdict accepts(const Call& call) {
  if (call.inputs.empty() || call.inputs.size() > kInputs) return no("takes one to eight inputs");
  for (const Operand& in : call.inputs)
    if (in.dtype != DType::f32) return no("is not float32", in.name);
  try {
    std::size_t buffers = 0;
    plan(ops::parse_program(call.attrs.text("program"), call.inputs.size()), call.inputs.size(), buffers);
    return buffers <= kTiles ? yes() : no("the program needs too many intermediate results at once");
  } catch (const Error& error) {
    return no(error.what());
  }
}

/// `rate`: the share of the peak that activations reach.
double seconds(const Call& call, const Target& target, double rate) {
  const double outputs = call.outputs.at(0).shape.known_elements();
  double bytes = 4 * outputs, flops = 0;
  for (const Operand& in : call.inputs) bytes += 4 * in.shape.known_elements();
  for (const ops::Instruction& line : ops::parse_program(call.attrs.text("program"), call.inputs.size())) {
    const bool plain = kOps.contains(line.op);
    flops += outputs * (plain ? 4 : activation_flops(activation_of({{"activation", line.op}}).kind));
  }
  return std::max(target.stream(bytes), target.compute(flops, rate));
}

}  // namespace

const Kernel pointwise_avx512 = {
    .op = "Pointwise",
    .name = "cpu.pointwise_avx512",
    .needs = Isa::avx512,
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return seconds(call, target, 0.3); },
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<Pointwise>(call, pointwise_step_avx512, activate_avx512);
    },
};

const Kernel pointwise_any = {
    .op = "Pointwise",
    .name = "cpu.pointwise_any",
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return seconds(call, target, 0.02); },
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<Pointwise>(call, pointwise_step_any, static_cast<Activate>(activate));
    },
};

}  // namespace modelflow::cpu
