// Squeeze and excitation on a GPU.
#include <algorithm>

#include "backends/activation.h"
#include "backends/call_attrs.h"
#include "backends/cuda/image.h"
#include "backends/cuda/kernels.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "SqueezeExcite";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what); }

ActivationSpec gate_of(const CallAttrs& attrs) {
  if (attrs.text("gate") == "Sigmoid") return {.kind = Activation::sigmoid};
  return {Activation::hard_sigmoid, attrs.number("gate_alpha"), attrs.number("gate_beta")};
}

class SqueezeExcite : public Implementation {
 public:
  SqueezeExcite(const Call& call, const DeviceLibrary& library)
      : library_(library),
        activation_(activation_of(call)),
        gate_(gate_of(call)),
        last_(CallAttrs(call).text("layout") == "NHWC"),
        skip_(CallAttrs(call).flag("skip")) {}

  void run(Invocation& call) const override {
    if (call.inputs() != 5) fail("wrong number of inputs");
    shared_number(kOp, call);
    const View x = call.input(0);
    ExciteLaunch launch = {};
    launch.image = image_of(kOp, x, last_);
    Image& image = launch.image;
    launch.squeezed = element_count(call.input(2).dims);
    const std::int64_t weights = image.channels * launch.squeezed;
    if (element_count(call.input(1).dims) != weights || element_count(call.input(3).dims) != weights ||
        element_count(call.input(4).dims) != image.channels)
      fail("the weights do not fit the channels of x");
    launch.activation = activation_;
    launch.gate = gate_;
    launch.skip = skip_;
    launch.w1 = call.input(1).data;
    launch.b1 = call.input(2).data;
    launch.w2 = call.input(3).data;
    launch.b2 = call.input(4).data;
    launch.y = call.output(0, x.dims);
    if (element_count(x.dims) == 0) return;
    constexpr std::int64_t kMostParts = 16;  // each product reads them all
    if (last_) image.parts = std::min(parts_of(image.batch * ((image.channels + 31) / 32), 4 * image.rows), kMostParts);
    const std::int64_t sums = image.batch * image.parts * image.channels, hidden = image.batch * launch.squeezed;
    const auto floats = static_cast<std::size_t>(sums + hidden + image.batch * image.channels);
    launch.sums = reinterpret_cast<float*>(call.scratch(floats * sizeof(float)));
    launch.hidden = launch.sums + sums;
    launch.factors = launch.hidden + hidden;
    check(kOp, library_.squeeze_excite(launch, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  ActivationSpec activation_, gate_;
  bool last_, skip_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.size() != 5) return no("takes x and two convolutions with bias");
  if (Verdict verdict = accepts_activation(call); !verdict) return verdict;
  return accepts_numbers(call);
}

/// Four launches; x is read twice, the second time from the second cache where it fits.
double cost(const Call& call, const Target& target) {
  const double x = element_bytes(call) * call.in(0).shape.known_elements();
  const double again = x < static_cast<double>(target.l2) ? 0 : x;
  return 4 * target.launch + target.stream(operand_bytes(call) + again);
}

}  // namespace

const Kernel squeeze_excite = {
    .op = kOp,
    .name = "cuda.squeeze_excite",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<SqueezeExcite>,
};

}  // namespace modelflow::cuda
