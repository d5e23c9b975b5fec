// Conv on a GPU: images of one to three axes in either layout; weights are laid out for the device once, when the
// session is made.
#include "backends/cuda/conv_geometry.h"
#include "backends/cuda/epilogue.h"
#include "backends/cuda/filters.h"
#include "backends/cuda/invocation.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"

namespace modelflow::cuda {
namespace {

using ops::ConvAttrs;

constexpr const char* kOp = "Conv";

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + message);
}

class Conv : public Implementation {
 public:
  Conv(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library),
        target_(target),
        conv_(call),
        activation_(activation_of(call)),
        weights_(call.in(1).constant->dims()),
        direct_(conv_.group > 1),
        w_(uploaded(library, turned(*call.in(1).constant, direct_))) {}

  void run(Invocation& call) const override {
    if (call.inputs() != conv_.inputs()) fail("takes " + std::to_string(conv_.inputs()) + " inputs");
    ConvLaunch c = {};
    c.number = shared_number(kOp, call);
    const Dims y = read_geometry(kOp, conv_, weights_, call.input(0).dims, c);
    c.epilogue = epilogue_of(kOp, call, conv_, activation_, weights_[0], y);
    c.x = call.input(0).data;
    if (conv_.has_pre) {
      c.pre_scale = of_channels(call, conv_.pre_index(), c.channels);
      c.pre_shift = of_channels(call, conv_.pre_index() + 1, c.channels);
    }
    c.w = w_.data();
    c.y = call.output(0, y);
    if (element_count(y) == 0) return;
    c.direct = direct_;
    c.tensor_cores = c.number != Number::f32 && target_.sm >= kTensorCores && dense(conv_);
    c.large = large_tiles(pixels_of(c), c.filters, 1, target_);
    check(kOp, library_.conv(c, call.stream()));
  }

 private:
  static const void* of_channels(const Invocation& call, std::size_t input, std::int64_t channels) {
    const View view = call.input(input);
    if (view.dims.size() != 1 || view.dims[0] != channels) fail("what scales and shifts x does not fit its channels");
    return view.data;
  }

  const DeviceLibrary& library_;
  Target target_;
  ConvAttrs conv_;
  ActivationSpec activation_;
  Dims weights_;
  bool direct_;
  DeviceMemory w_;
};

Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_numbers(call); !verdict) return verdict;
  const ConvAttrs conv(call);
  const Operand& w = call.in(1);
  // Each window makes its own: those that overlap would repeat it.
  if (conv.has_pre && !(conv.kernel == Ints(conv.rank(), 1) && conv.pads == Ints(2 * conv.rank(), 0)))
    return no("activates its operand first, and is no product of pixels", call.in(0).name);
  return accepts_filters(w, conv);
}

double cost(const Call& call, const Target& target) {
  return product_seconds_in(dense(ConvAttrs(call)) ? call.in(0).dtype : DType::f32, 0, call, target);
}

}  // namespace

const Kernel conv = {
    .op = "Conv",
    .name = "cuda.conv",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<Conv>,
};

}  // namespace modelflow::cuda
