// LSTM and GRU on a GPU.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/epilogue.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/recurrent_attrs.h"

namespace modelflow::cuda {
namespace {

using ops::RecurrentAttrs;

/// Whether r of a direction stays in the cache of a multiprocessor, beside what else goes through it.
bool walks(const RecurrentAttrs& attrs, double size, const Target& target) {
  constexpr double kShare = 0.8;
  const auto hidden = static_cast<double>(attrs.hidden);
  return size * static_cast<double>(attrs.gates()) * hidden * hidden <= kShare * static_cast<double>(target.l1);
}

class Recurrent : public Implementation {
 public:
  Recurrent(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library), target_(target), attrs_(call) {}

  void run(Invocation& call) const override {
    if (call.inputs() != attrs_.inputs()) fail("takes " + std::to_string(attrs_.inputs()) + " inputs");
    RecurrentLaunch l = {};
    l.number = shared_number(op(), call);
    l.lstm = attrs_.lstm;
    l.linear_before_reset = attrs_.linear_before_reset;
    l.reverse = attrs_.reverse;
    l.clip = attrs_.clip > 0 ? attrs_.clip : std::numeric_limits<float>::infinity();
    read(call, l);
    allocate(call, l);
    if (l.batch == 0) return;
    const std::int64_t rows = l.seq * l.batch, gates = attrs_.gates() * l.hidden;
    l.tensor_cores = l.number != Number::f32 && target_.sm >= kTensorCores;
    l.walks = walks(attrs_, static_cast<double>(bytes_of(l.number)), target_);
    l.large = large_tiles(rows, gates, l.dirs, target_);
    const std::int64_t states = l.dirs * l.batch * l.hidden;
    l.gates = floats(call, l.dirs * rows * gates);
    l.h = floats(call, 2 * states);
    if (l.lstm) l.c = floats(call, states);
    if (!l.lstm && !l.linear_before_reset) l.reset = floats(call, states);
    check(op(), library_.recurrent(l, call.stream()));
  }

 private:
  const char* op() const { return attrs_.lstm ? "LSTM" : "GRU"; }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::invalid_input, std::string(op()) + ": " + what);
  }
  static float* floats(Invocation& call, std::int64_t count) {
    return reinterpret_cast<float*>(call.scratch(static_cast<std::size_t>(count) * sizeof(float)));
  }

  /// Input `i`, which has to be of these extents.
  const void* operand(const Invocation& call, std::size_t i, const char* what, const Dims& dims) const {
    const View view = call.input(i);
    if (!std::ranges::equal(view.dims, dims))
      fail(std::string(what) + " is " + Shape::of({view.dims.begin(), view.dims.end()}).str() + ", not " +
           Shape::of(dims).str());
    return view.data;
  }

  void read(const Invocation& call, RecurrentLaunch& l) const {
    const View x = call.input(0);
    if (x.dims.size() != 3) fail("x is not of rank 3");
    l.x = x.data;
    l.seq = x.dims[attrs_.x_batch_first ? 1 : 0];
    l.batch = x.dims[attrs_.x_batch_first ? 0 : 1];
    l.input = x.dims[2];
    l.hidden = attrs_.hidden;
    l.dirs = attrs_.dirs();
    l.x_step = attrs_.x_batch_first ? 1 : l.batch;
    l.x_row = attrs_.x_batch_first ? l.seq : 1;
    const std::int64_t gates = attrs_.gates() * l.hidden;
    const Dims state = {l.dirs, l.batch, l.hidden};
    l.w = operand(call, 1, "w", {l.dirs, gates, l.input});
    l.r = operand(call, 2, "r", {l.dirs, gates, l.hidden});
    if (attrs_.has_bias) l.bias = operand(call, attrs_.bias_index(), "b", {l.dirs, 2 * gates});
    if (attrs_.has_lengths) l.lengths = operand(call, attrs_.lengths_index(), "lengths", {l.batch});
    if (attrs_.has_state) l.first_h = operand(call, attrs_.state_index(), "initial_h", state);
    if (attrs_.has_state && attrs_.lstm) l.first_c = operand(call, attrs_.state_index() + 1, "initial_c", state);
  }

  void allocate(Invocation& call, RecurrentLaunch& l) const {
    const std::int64_t s = l.seq, n = l.batch, d = l.dirs, h = l.hidden;
    const Dims state = {d, n, h};
    std::size_t next = 0;
    const bool turned = attrs_.y_batch_first(), dirs_before_batch = attrs_.y_layout == "SDBH";
    const std::int64_t outer = turned ? n : s, inner = turned ? s : n;
    if (attrs_.y)
      l.y = call.output(next++, dirs_before_batch   ? Dims{s, d, n, h}
                                : attrs_.y_joined() ? Dims{outer, inner, d * h}
                                                    : Dims{outer, inner, d, h});
    l.y_step = turned ? d * h : d * n * h;
    l.y_row = turned ? s * d * h : dirs_before_batch ? h : d * h;
    l.y_dir = dirs_before_batch ? n * h : h;
    if (attrs_.y_h) l.last_h = call.output(next++, state);
    if (attrs_.y_c) l.last_c = call.output(next++, state);
  }

  const DeviceLibrary& library_;
  Target target_;
  RecurrentAttrs attrs_;
};

/// An extent of x: its steps, its sequences or its numbers; 0 where that is not known.
std::int64_t extent_of_x(const Call& call, std::size_t axis) {
  const Shape& x = call.in(0).shape;
  return x.has_rank() && x.rank() == 3 ? x[axis].number().value_or(0) : 0;
}

Verdict accepts(const Call& call, const Target&) {
  Call copy = call;
  if (Verdict verdict = find_fused_op(call.op)->infer(copy); !verdict) return verdict;
  if (Verdict verdict = accepts_numbers(call); !verdict) return verdict;
  const RecurrentAttrs attrs(call);
  if (!attrs.has_lengths || call.in(0).dtype == DType::f32) return yes();
  // Lengths are of the same type, which holds whole numbers up to this one.
  const std::int64_t most = call.in(0).dtype == DType::f16 ? 2048 : 256;
  const std::int64_t steps = extent_of_x(call, attrs.x_batch_first ? 1 : 0);
  return steps > 0 && steps <= most ? yes() : no("may have more steps than its type counts", call.in(0).name);
}

/// The gates of x, then the steps: launches, in which r comes from the cache of the device once for each group of
/// sequences, or one block for each group, which has it in its own.
double cost(const Call& call, const Target& target) {
  constexpr double kTensor = 0.4, kPlain = 0.5, kStep = 0.25;  // of the peaks; a step has few threads
  const RecurrentAttrs attrs(call);
  const auto extent = [&](std::size_t axis) {
    return static_cast<double>(std::max<std::int64_t>(extent_of_x(call, axis), 1));
  };
  const double steps = extent(attrs.x_batch_first ? 1 : 0), batch = extent(attrs.x_batch_first ? 0 : 1);
  const double w = call.in(1).shape.known_elements(), r = call.in(2).shape.known_elements();
  const double dirs = static_cast<double>(attrs.dirs());
  const DType type = call.in(0).dtype;
  const double size = static_cast<double>(byte_count(type, {}));
  const bool tensor = type != DType::f32 && target.sm >= kTensorCores;
  const double flops = 2 * steps * batch * w;
  const double of_gates = 2 * sizeof(float) * steps * batch * dirs * static_cast<double>(attrs.gates() * attrs.hidden);
  const double first = std::max(tensor ? target.compute(type, flops, kTensor) : target.compute(flops, kPlain),
                                target.stream(operand_bytes(call) + of_gates));
  const double passes = attrs.lstm || attrs.linear_before_reset ? 1 : 2;
  if (walks(attrs, size, target)) {
    constexpr double kPass = 0.5e-6, kCache = 150e9;  // barriers and sums; bytes per second of a multiprocessor's cache
    const double blocks = dirs * std::ceil(batch / RecurrentLaunch::kWalkRows),
                 rounds = std::ceil(blocks / target.cores);
    return 3 * target.launch + first + rounds * steps * (passes * kPass + size * r / dirs / kCache);
  }
  const double read = size * r * std::ceil(batch / RecurrentLaunch::kStepRows);
  const double step = std::max(read / (target.l2_bandwidth * target.cores), target.compute(2 * batch * r, kStep));
  return 2 * target.launch + first + steps * (passes * target.launch + step);
}

}  // namespace

const Kernel lstm = {
    .op = "LSTM",
    .name = "cuda.lstm",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<Recurrent>,
};

const Kernel gru = {
    .op = "GRU",
    .name = "cuda.gru",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<Recurrent>,
};

}  // namespace modelflow::cuda
