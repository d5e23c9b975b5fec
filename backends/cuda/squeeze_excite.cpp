// Squeeze and excitation on a GPU.
#include <algorithm>

#include "backends/activation.h"
#include "backends/call_attrs.h"
#include "backends/cuda/bytes.h"
#include "backends/cuda/image.h"
#include "backends/cuda/invocation.h"
#include "backends/cuda/kernels.h"

namespace modelflow::cuda {
namespace {

constexpr const char *kOp = "SqueezeExcite", *kBytes = "QSqueezeExcite";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what); }

ActivationSpec gate_of(const CallAttrs& attrs) {
  if (attrs.text("gate") == "Sigmoid") return {.kind = Activation::sigmoid};
  return {Activation::hard_sigmoid, attrs.number("gate_alpha"), attrs.number("gate_beta")};
}

/// What both forms do. Which weights there are is said by those who derive from it.
class Excite : public Implementation {
 public:
  Excite(const Call& call, const DeviceLibrary& library)
      : library_(library),
        activation_(activation_of(call)),
        gate_(gate_of(call)),
        last_(CallAttrs(call).text("layout") == "NHWC"),
        skip_(CallAttrs(call).flag("skip")) {}

 protected:
  /// `launch` has the weights; b1, w2 and b2 are places among the inputs, as is 1 for w1.
  void excite(Invocation& call, ExciteLaunch& launch, std::size_t b1, std::size_t w2, std::size_t b2) const {
    const View x = call.input(0);
    launch.image = image_of(kOp, x, last_);
    Image& image = launch.image;
    launch.squeezed = element_count(call.input(b1).dims);
    const std::int64_t weights = image.channels * launch.squeezed;
    if (element_count(call.input(1).dims) != weights || element_count(call.input(w2).dims) != weights ||
        element_count(call.input(b2).dims) != image.channels)
      fail("the weights do not fit the channels of x");
    launch.activation = activation_;
    launch.gate = gate_;
    launch.skip = skip_;
    launch.b1 = call.input(b1).data;
    launch.b2 = call.input(b2).data;
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

  const DeviceLibrary& library_;

 private:
  ActivationSpec activation_, gate_;
  bool last_, skip_;
};

class SqueezeExcite : public Excite {
 public:
  using Excite::Excite;

  void run(Invocation& call) const override {
    if (call.inputs() != 5) fail("wrong number of inputs");
    shared_number(kOp, call);
    ExciteLaunch launch = {};
    launch.w1 = call.input(1).data;
    launch.w2 = call.input(3).data;
    excite(call, launch, 2, 3, 4);
  }
};

/// Weights become floats when the session is made: they are few.
class QSqueezeExcite : public Excite {
 public:
  QSqueezeExcite(const Call& call, const DeviceLibrary& library)
      : Excite(call, library),
        x_steps_(steps_of(call, "x")),
        y_steps_(steps_of(call, "y")),
        w1_(uploaded(library, dequantized(*call.in(1).constant, *call.in(2).constant))),
        w2_(uploaded(library, dequantized(*call.in(4).constant, *call.in(5).constant))) {}

  void run(Invocation& call) const override {
    if (call.inputs() != 7 || call.input(0).dtype != DType::u8) fail("wrong inputs for 8 bits");
    ExciteLaunch launch = {};
    launch.x_steps = x_steps_;
    launch.y_steps = y_steps_;
    launch.w1 = w1_.data();
    launch.w2 = w2_.data();
    excite(call, launch, 3, 4, 6);
  }

 private:
  Steps x_steps_, y_steps_;
  DeviceMemory w1_, w2_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.size() != 5) return no("takes x and two convolutions with bias");
  if (Verdict verdict = accepts_activation(call); !verdict) return verdict;
  return accepts_numbers(call);
}

Verdict accepts_bytes(const Call& call, const Target&) {
  if (call.inputs.size() != 7) return no("takes x and two convolutions with scales and bias");
  if (Verdict v = accepts_declared_types(call); !v) return v;
  for (const std::size_t i : {1, 4})
    if (Verdict v = accepts_rows(call.in(i), 0, call.in(i + 1), nullptr); !v) return v;
  return accepts_activation(call);
}

/// Four launches; x is read twice, the second time from the second cache where it fits.
double cost(const Call& call, const Target& target) {
  const double x = static_cast<double>(byte_count(call.in(0).dtype, {})) * call.in(0).shape.known_elements();
  const double again = x < static_cast<double>(target.l2) ? 0 : x;
  return 4 * target.launch + target.stream(operand_bytes(call) + again);
}

}  // namespace

const Kernel qsqueeze_excite = {
    .op = kBytes,
    .name = "cuda.qsqueeze_excite",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts_bytes,
    .cost = cost,
    .create = create<QSqueezeExcite>,
};

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
