// The kernel of SelectiveScan: channels are independent, each task has a few vectors of them from begin to end.
#include <algorithm>
#include <array>

#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/recurrent/kernels.h"
#include "backends/ops/selective_scan_attrs.h"
#include "backends/ops/work.h"

namespace modelflow::cpu {
namespace {

/// Channels of a task at most: whole lines of y, and 16 states of as many stay in the first cache beside a.
constexpr std::size_t kChannels = 64;
constexpr std::size_t kWholeVectors = 16;  ///< floats of the widest vector

struct Problem {
  std::size_t batch = 0, length = 0, channels = 0, states = 0, steps = 0;
  std::array<const float*, 6> in{};  ///< u, delta, a, b, c, the first state or null
  float *y = nullptr, *last = nullptr;

  Problem(const ops::SelectiveScanAttrs& attrs, Invocation& call) {
    const std::string op = "SelectiveScan";
    if (call.inputs() != attrs.inputs())
      throw Error(ErrorKind::invalid_input, op + ": takes " + std::to_string(attrs.inputs()) + " inputs");
    const std::span<const std::int64_t> row = call.input(0).dims, of_a = call.input(2).dims;
    if (row.size() != 3 || of_a.size() != 2 || row[1] < attrs.steps)
      throw Error(ErrorKind::invalid_input, op + ": u is " + text(row) + " and a " + text(of_a) + " for " +
                                                std::to_string(attrs.steps) + " steps");
    const Dims u = {row.begin(), row.end()}, a = {row[2], of_a[1]}, b = {row[0], row[1], of_a[1]};
    const Dims state = {row[0], row[2], of_a[1]};
    const std::array<const Dims*, 6> wanted = {&u, &u, &a, &b, &b, &state};
    for (std::size_t i = 0; i < attrs.inputs(); ++i) in[i] = typed_input<float>(call, op, i, *wanted[i]);
    batch = static_cast<std::size_t>(u[0]);
    length = static_cast<std::size_t>(u[1]);
    channels = static_cast<std::size_t>(u[2]);
    states = static_cast<std::size_t>(a[1]);
    steps = static_cast<std::size_t>(attrs.steps);
    y = static_cast<float*>(call.output(0, Dims{u[0], attrs.steps, u[2]}));
    if (attrs.keep_state) last = static_cast<float*>(call.output(1, state));
  }
};

class SelectiveScan : public Implementation {
 public:
  SelectiveScan(const Call& call, const VectorCode& code)
      : attrs_(call), steps_(attrs_.scales_b ? code.scan.selective_scaled : code.scan.selective) {}

  void run(Invocation& call) const override {
    const Problem p(attrs_, call);
    const std::size_t blocks = (p.channels + kChannels - 1) / kChannels;
    if (p.batch * blocks == 0) return;
    const std::size_t floats = 2 * kChannels * p.states;
    run_with_scratch(call, static_cast<std::int64_t>(p.batch * blocks), floats * sizeof(float),
                     [&](std::int64_t task, std::byte* scratch) {
                       const auto i = static_cast<std::size_t>(task);
                       strip(p, i / blocks, i % blocks * kChannels, reinterpret_cast<float*>(scratch));
                     });
  }

 private:
  /// The channels from `first` on of one sequence.
  void strip(const Problem& p, std::size_t sequence, std::size_t first, float* scratch) const {
    SelectiveSteps s;
    s.steps = p.steps;
    s.channels = std::min(kChannels, p.channels - first);
    s.states = p.states;
    s.stride = p.channels;
    s.width = (s.channels + kWholeVectors - 1) / kWholeVectors * kWholeVectors;
    s.u = p.in[0] + sequence * p.length * p.channels + first;
    s.delta = p.in[1] + sequence * p.length * p.channels + first;
    s.b = p.in[3] + sequence * p.length * p.states;
    s.c = p.in[4] + sequence * p.length * p.states;
    s.y = p.y + sequence * p.steps * p.channels + first;
    const std::size_t state = (sequence * p.channels + first) * p.states;
    s.h = scratch + s.width * p.states;
    std::fill_n(scratch, 2 * s.width * p.states, 0.0f);
    turn(p.in[2] + first * p.states, scratch, s);
    s.a = scratch;
    if (p.in[5]) turn(p.in[5] + state, s.h, s);
    steps_(s);
    if (!p.last) return;
    for (std::size_t c = 0; c < s.channels; ++c)
      for (std::size_t n = 0; n < s.states; ++n) p.last[state + c * s.states + n] = s.h[n * s.width + c];
  }

  /// [channels, states] -> [states, width]
  static void turn(const float* from, float* to, const SelectiveSteps& s) {
    for (std::size_t c = 0; c < s.channels; ++c)
      for (std::size_t n = 0; n < s.states; ++n) to[n * s.width + c] = from[c * s.states + n];
  }

  ops::SelectiveScanAttrs attrs_;
  void (*steps_)(const SelectiveSteps&);
};

/// Exponentials and the state in the first cache come to a quarter of the peak.
double cost(const Call& call, const Target& target) { return target.compute(ops::selective_scan_flops(call), 0.25); }

}  // namespace

const Kernel selective_scan = {
    .op = "SelectiveScan",
    .name = "cpu.selective_scan",
    .accepts = accepts_float32,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<SelectiveScan>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
