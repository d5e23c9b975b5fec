// Activation on a GPU.
#include "backends/activation.h"

#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "Activation";

class Elementwise : public Implementation {
 public:
  Elementwise(const Call& call, const DeviceLibrary& library) : library_(library), activation_(activation_of(call)) {}

  void run(Invocation& call) const override {
    ActivationLaunch launch = {};
    launch.number = shared_number(kOp, call);
    launch.activation = activation_;
    const View x = call.input(0);
    launch.elements = element_count(x.dims);
    launch.x = x.data;
    launch.y = call.output(0, x.dims);
    if (launch.elements > 0) check(kOp, library_.activation(launch, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  ActivationSpec activation_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.size() != 1) return no("takes one input");
  if (Verdict verdict = accepts_activation(call); !verdict) return verdict;
  return accepts_numbers(call);
}

}  // namespace

const Kernel activation = {
    .op = kOp,
    .name = "cuda.activation",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = moving_seconds,
    .create = create<Elementwise>,
};

}  // namespace modelflow::cuda
