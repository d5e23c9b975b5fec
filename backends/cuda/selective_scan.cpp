// SelectiveScan on a GPU.
#include <algorithm>
#include <array>

#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/ops/selective_scan_attrs.h"
#include "backends/ops/work.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "SelectiveScan";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what); }

/// How many threads share a channel: as few as keep all multiprocessors busy.
std::int32_t lanes_for(std::int64_t channels, const Target& target) {
  constexpr std::int64_t kThreads = 256;  // of a multiprocessor: two warps for each of its schedulers
  for (const std::int32_t lanes : {1, 4})
    if (channels * lanes >= target.cores * kThreads) return lanes;
  return 16;
}

class SelectiveScan : public Implementation {
 public:
  SelectiveScan(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library), target_(target), attrs_(call) {}

  void run(Invocation& call) const override {
    if (call.inputs() != attrs_.inputs()) fail("wrong number of inputs");
    SelectiveScanLaunch s = {};
    s.number = shared_number(kOp, call);
    const Dims state = read(call, s);
    s.lanes = lanes_for(s.batch * s.channels, target_);
    s.scales_b = attrs_.scales_b;
    s.u = call.input(0).data;
    s.delta = call.input(1).data;
    s.a = call.input(2).data;
    s.b = call.input(3).data;
    s.c = call.input(4).data;
    if (attrs_.has_state) s.first = call.input(5).data;
    s.y = call.output(0, Dims{s.batch, s.steps, s.channels});
    if (attrs_.keep_state) s.last = call.output(1, state);
    if (s.batch * s.channels == 0) return;
    if (s.states > SelectiveScanLaunch::kStates)
      s.carried =
          reinterpret_cast<float*>(call.scratch(static_cast<std::size_t>(element_count(state)) * sizeof(float)));
    check(kOp, library_.selective_scan(s, call.stream()));
  }

 private:
  /// Extents, and those of a state.
  Dims read(const Invocation& call, SelectiveScanLaunch& s) const {
    const std::span<const std::int64_t> u = call.input(0).dims, a = call.input(2).dims;
    if (u.size() != 3 || a.size() != 2 || u[1] < attrs_.steps) fail("u or a is not of its rank, or u has too few rows");
    s.batch = u[0], s.length = u[1], s.channels = u[2], s.states = a[1], s.steps = attrs_.steps;
    const Dims rows = {u[0], u[1], u[2]}, rates = {u[2], a[1]}, columns = {u[0], u[1], a[1]};
    Dims state = {u[0], u[2], a[1]};
    const std::array<const Dims*, 6> wanted = {&rows, &rows, &rates, &columns, &columns, &state};
    for (std::size_t i = 0; i < attrs_.inputs(); ++i)
      if (!std::ranges::equal(call.input(i).dims, *wanted[i])) fail("its inputs do not fit each other");
    return state;
  }

  const DeviceLibrary& library_;
  Target target_;
  ops::SelectiveScanAttrs attrs_;
};

Verdict accepts(const Call& call, const Target&) {
  Call copy = call;
  if (Verdict verdict = find_fused_op(kOp)->infer(copy); !verdict) return verdict;
  return accepts_numbers(call);
}

/// Exponentials at a quarter of the peak, or bytes, or, where there are few channels, steps that wait for one another.
double cost(const Call& call, const Target& target) {
  constexpr double kStep = 25e-9;  // some 40 cycles
  const double steps = kStep * static_cast<double>(ops::SelectiveScanAttrs(call).steps);
  const double work = target.compute(ops::selective_scan_flops(call), 0.25);
  return target.launch + std::max({steps, work, target.stream(operand_bytes(call))});
}

}  // namespace

const Kernel selective_scan = {
    .op = kOp,
    .name = "cuda.selective_scan",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<SelectiveScan>,
};

}  // namespace modelflow::cuda
