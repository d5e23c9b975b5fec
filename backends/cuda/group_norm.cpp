// Group normalization on a GPU, channels last or second.
#include <algorithm>

#include "backends/activation.h"
#include "backends/call_attrs.h"
#include "backends/cuda/image.h"
#include "backends/cuda/kernels.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "GroupNorm";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string("GroupNorm: ") + what); }

class GroupNorm : public Implementation {
 public:
  GroupNorm(const Call& call, const DeviceLibrary& library)
      : library_(library),
        activation_(activation_of(call)),
        groups_(CallAttrs(call).integer("num_groups")),
        epsilon_(CallAttrs(call).number("epsilon")),
        last_(CallAttrs(call).text("layout") == "NHWC") {}

  void run(Invocation& call) const override {
    shared_number(kOp, call);
    const View x = call.input(0);
    GroupNormLaunch launch = {};
    launch.image = image_of(kOp, x, last_);
    Image& image = launch.image;
    for (const std::size_t i : {1U, 2U}) {
      const View view = call.input(i);
      if (view.dims.size() != 1 || view.dims[0] != image.channels) fail("scale or bias has not one entry per channel");
    }
    if (image.channels % groups_ != 0) fail("the channels are no multiple of the groups");
    launch.groups = groups_;
    launch.scale = call.input(1).data;
    launch.bias = call.input(2).data;
    launch.epsilon = epsilon_;
    launch.activation = activation_;
    launch.y = call.output(0, x.dims);
    if (element_count(x.dims) == 0) return;
    const std::int64_t units = image.batch * groups_, length = image.channels / groups_ * image.rows;
    image.parts =
        last_ ? parts_of(image.batch * ((image.channels + 31) / 32), image.rows * 4) : parts_of(units, length / 4);
    image.parts = std::min(image.parts, last_ ? image.rows : length);
    const std::int64_t partial = 2 * image.parts * (last_ ? image.batch * image.channels : units);
    auto* floats =
        reinterpret_cast<float*>(call.scratch(static_cast<std::size_t>(partial + 2 * units) * sizeof(float)));
    launch.partial = floats;
    launch.moments = floats + partial;
    check(kOp, library_.group_norm(launch, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  ActivationSpec activation_;
  std::int64_t groups_;
  float epsilon_;
  bool last_;
};

Verdict accepts(const Call& call, const Target&) {
  if (CallAttrs(call).integer("num_groups") < 1) return no("num_groups is not positive");
  if (Verdict verdict = accepts_activation(call); !verdict) return verdict;
  return accepts_numbers(call);
}

/// Three launches, which read x twice: the second time from the second cache where it fits.
double cost(const Call& call, const Target& target) {
  const double x = element_bytes(call) * call.in(0).shape.known_elements();
  return 3 * target.launch + target.stream(x < static_cast<double>(target.l2) ? 2 * x : 3 * x);
}

}  // namespace

const Kernel group_norm = {
    .op = kOp,
    .name = "cuda.group_norm",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<GroupNorm>,
};

}  // namespace modelflow::cuda
