// Upsample on a GPU where it interpolates, channels first or last.
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/resized.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "Upsample";

class Interpolate : public Implementation {
 public:
  Interpolate(const Call& call, const DeviceLibrary& library)
      : library_(library), resizing_(call), sizes_(call.has(1) ? call.in(1).constant->to_ints() : Ints()) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    const std::optional<Number> number = number_of(x.dtype);
    if (!number) throw Error(ErrorKind::invalid_input, std::string(kOp) + ": x is of another type");
    const ops::Resized made = resizing_.of(x.dims, sizes_);
    InterpolateLaunch launch = {};
    launch.number = *number;
    launch.how = resizing_.how();
    launch.images = made.images;
    launch.channels = made.channels;
    launch.high = made.high;
    launch.wide = made.wide;
    launch.flat = made.flat;
    launch.x = x.data;
    launch.y = call.output(0, made.dims);
    if (made.numbers == 0) return;
    check(kOp, made.same() ? library_.copy(launch.y, launch.x, made.numbers * bytes_of(*number), call.stream())
                           : library_.interpolate(launch, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  ops::Resizing resizing_;
  Ints sizes_;
};

/// Sizes that are computed lie on the device: to know how large the result is, the host would wait for it.
Verdict accepts(const Call& call, const Target&) {
  if (call.has(1) && !call.in(1).constant) return no("is no constant", call.in(1).name);
  if (!number_of(call.in(0).dtype)) return no("is not float32, float16 or bfloat16", call.in(0).name);
  return ops::accepts_resizing(call);
}

}  // namespace

/// What neighbours read of the same pixels comes from the caches.
const Kernel interpolate = {
    .op = kOp,
    .name = "cuda.interpolate",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = moving_seconds,
    .create = create<Interpolate>,
};

}  // namespace modelflow::cuda
