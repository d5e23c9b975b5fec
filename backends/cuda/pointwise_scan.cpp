// PointwiseScan on a GPU.
#include <algorithm>

#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/program.h"
#include "backends/ops/pointwise_scan_attrs.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "PointwiseScan";
[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what);
}

/// What does not depend on extents.
PointwiseScanLaunch launch_of(const ops::PointwiseScanAttrs& scan) {
  PointwiseScanLaunch s = {};
  s.program = device_program(scan.program);
  s.first = scan.first;
  s.steps = scan.steps;
  s.inputs = static_cast<std::int32_t>(scan.inputs());
  s.sequences = static_cast<std::int32_t>(scan.sequences);
  s.states = static_cast<std::int32_t>(scan.next.size());
  s.takers[scan.result] |= PointwiseScanLaunch::kResult;
  for (std::size_t i = 0; i < scan.next.size(); ++i)
    s.takers[scan.next[i]] = static_cast<std::uint8_t>(s.takers[scan.next[i]] | 1U << i);
  return s;
}

class PointwiseScan : public Implementation {
 public:
  PointwiseScan(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library), target_(target), scan_(call), made_(launch_of(scan_)) {}

  void run(Invocation& call) const override {
    if (call.inputs() != scan_.inputs()) fail("takes " + std::to_string(scan_.inputs()) + " inputs");
    PointwiseScanLaunch s = made_;
    s.number = shared_number(kOp, call);
    const Dims step = read(call, s);
    std::vector<std::span<const std::int64_t>> dims(scan_.sequences, step);
    for (std::size_t i = scan_.sequences; i < scan_.inputs(); ++i) dims.push_back(call.input(i).dims);
    const Broadcast shape(kOp, dims);
    if (shape.dims() != step) fail("an input is larger than a step " + Shape::of(step).str());
    s.places = places_of(kOp, shape, scan_.inputs());
    for (std::size_t i = 0; i < scan_.inputs(); ++i) s.x[i] = call.input(i).data;
    Dims rows = step;
    rows.insert(rows.begin() + scan_.axis, scan_.steps);
    s.y = call.output(0, rows);
    for (std::size_t i = 0; scan_.keep_state && i < scan_.next.size(); ++i) s.last[i] = call.output(i + 1, step);
    // Where every scheduler has warps enough to hide what one waits for, fewer threads spare choices between ops.
    constexpr std::int64_t kThreads = 256;
    s.wide = s.outer * s.inner >= target_.cores * kThreads * PointwiseScanLaunch::kWide;
    if (shape.elements() > 0) check(kOp, library_.pointwise_scan(s, call.stream()));
  }

 private:
  /// Extents of the sequences, and those of a step.
  Dims read(const Invocation& call, PointwiseScanLaunch& s) const {
    const std::span<const std::int64_t> x = call.input(0).dims;
    const auto axis = static_cast<std::size_t>(scan_.axis);
    if (axis >= x.size() || x[axis] < scan_.first + scan_.steps)
      fail("x0 is " + Shape::of({x.begin(), x.end()}).str() + " for " + std::to_string(scan_.first + scan_.steps) +
           " steps");
    for (std::size_t i = 1; i < scan_.sequences; ++i)
      if (!std::ranges::equal(call.input(i).dims, x)) fail("its sequences are not of the same extents");
    s.outer = element_count(x.first(axis));
    s.length = x[axis];
    s.inner = element_count(x.subspan(axis + 1));
    Dims step(x.begin(), x.end());
    step.erase(step.begin() + scan_.axis);
    return step;
  }

  const DeviceLibrary& library_;
  Target target_;
  ops::PointwiseScanAttrs scan_;
  PointwiseScanLaunch made_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.size() > Places::kOperands) return no("takes eight inputs at most");
  if (Verdict verdict = accepts_axes(call); !verdict) return verdict;
  Call copy = call;
  if (Verdict verdict = find_fused_op(kOp)->infer(copy); !verdict) return verdict;
  try {
    device_program(ops::PointwiseScanAttrs(call).program);
  } catch (const Error& error) {
    return no(error.what());
  }
  return accepts_numbers(call);
}

/// Bytes, or interpreting lines at the rate of the device, or, where there are few chains, steps that wait for one
/// another.
double cost(const Call& call, const Target& target) {
  constexpr double kLine = 50e-9;       // some 80 cycles: two reads of shared memory one behind the other, and a choice
  constexpr double kInstructions = 20;  // of a line; two operations each, were they of the kind that peaks count
  const ops::PointwiseScanAttrs scan(call);
  const double lines = 1 + static_cast<double>(scan.program.size());
  const double steps = kLine * lines * static_cast<double>(scan.steps);
  const double rows = call.outputs.at(0).shape.known_elements();
  const double size = static_cast<double>(byte_count(call.in(0).dtype, {}));
  const double bytes = size * rows * static_cast<double>(1 + scan.sequences);
  return target.launch + std::max({steps, target.compute(2 * kInstructions * lines * rows, 1), target.stream(bytes)});
}

}  // namespace

const Kernel pointwise_scan = {
    .op = kOp,
    .name = "cuda.pointwise_scan",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<PointwiseScan>,
};

}  // namespace modelflow::cuda
