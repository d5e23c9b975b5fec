// Programs of elementwise ops on a GPU: one pass over the operands.
#include "backends/call_attrs.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/program.h"
#include "backends/cuda/work.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "Pointwise";

Program program_of(const Call& call) {
  return device_program(ops::parse_program(CallAttrs(call).text("program"), call.inputs.size()));
}

class Pointwise : public Implementation {
 public:
  Pointwise(const Call& call, const DeviceLibrary& library)
      : library_(library), inputs_(call.inputs.size()), program_(program_of(call)) {}

  void run(Invocation& call) const override {
    if (call.inputs() != inputs_) throw Error(ErrorKind::invalid_input, "Pointwise: wrong number of inputs");
    PointwiseLaunch launch = {};
    launch.number = shared_number(kOp, call);
    std::vector<std::span<const std::int64_t>> dims;
    for (std::size_t i = 0; i < inputs_; ++i) dims.push_back(call.input(i).dims);
    const Broadcast shape(kOp, dims);
    launch.places = places_of(kOp, shape, inputs_);
    for (std::size_t i = 0; i < inputs_; ++i) launch.x[i] = call.input(i).data;
    launch.inputs = static_cast<std::int32_t>(inputs_);
    launch.elements = static_cast<std::int64_t>(shape.elements());
    launch.program = program_;
    launch.y = call.output(0, shape.dims());
    if (launch.elements > 0) check(kOp, library_.pointwise(launch, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  std::size_t inputs_;
  Program program_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.empty() || call.inputs.size() > Places::kOperands) return no("takes one to eight inputs");
  try {
    program_of(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  if (Verdict verdict = accepts_axes(call); !verdict) return verdict;
  return accepts_numbers(call);
}

}  // namespace

const Kernel pointwise = {
    .op = kOp,
    .name = "cuda.pointwise",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = moving_seconds,
    .create = create<Pointwise>,
};

}  // namespace modelflow::cuda
