// Conv on a GPU: images of one or two axes in either layout; weights are laid out for the device once, when the session
// is made.
#include <algorithm>

#include "backends/cuda/epilogue.h"
#include "backends/cuda/filters.h"
#include "backends/cuda/invocation.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/conv_attrs.h"

namespace modelflow::cuda {
namespace {

using ops::ConvAttrs;

constexpr const char* kOp = "Conv";

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + message);
}

ImageStrides strides_of(bool last, std::int64_t channels, std::int64_t rows, std::int64_t columns) {
  const std::int64_t area = rows * columns;
  if (last) return {area * channels, 1, columns * channels, channels};
  return {area * channels, area, columns, 1};
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
    const Dims y = read(call.input(0).dims, c);
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
    c.tensor_cores = c.number != Number::f32 && target_.sm >= kTensorCores && conv_.x_last;
    c.large = large_tiles(c.batch * c.rows * c.columns, c.filters, 1, target_);
    check(kOp, library_.conv(c, call.stream()));
  }

 private:
  static const void* of_channels(const Invocation& call, std::size_t input, std::int64_t channels) {
    const View view = call.input(input);
    if (view.dims.size() != 1 || view.dims[0] != channels) fail("what scales and shifts x does not fit its channels");
    return view.data;
  }

  /// Geometry from x; one axis is an image of one row.
  Dims read(std::span<const std::int64_t> x, ConvLaunch& c) const {
    const std::size_t rank = conv_.rank(), last = rank - 1, first = conv_.x_last ? 1 : 2;
    if (x.size() != rank + 2) fail("x is not of the rank of the weights");
    const std::int64_t channels = x[conv_.x_last ? rank + 1 : 1];
    if (channels != weights_[1] * conv_.group) fail("x has other channels than the weights");
    const Dims y = conv_.output_dims(x, weights_[0]);
    const std::size_t first_y = conv_.y_last ? 1 : 2;
    const auto small = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
    c.batch = x[0], c.channels = small(channels), c.filters = small(weights_[0]), c.group = small(conv_.group);
    c.width = x[first + last], c.columns = y[first_y + last];
    c.kernel_w = small(conv_.kernel[last]), c.stride_w = small(conv_.strides[last]);
    c.dilation_w = small(conv_.dilations[last]), c.left = small(conv_.pads[last]);
    c.height = c.rows = c.kernel_h = c.stride_h = c.dilation_h = 1;
    if (rank > 1) {
      c.height = x[first], c.rows = y[first_y], c.kernel_h = small(conv_.kernel[0]);
      c.stride_h = small(conv_.strides[0]), c.dilation_h = small(conv_.dilations[0]), c.top = small(conv_.pads[0]);
    }
    c.x_strides = strides_of(conv_.x_last, channels, c.height, c.width);
    c.y_strides = strides_of(conv_.y_last, weights_[0], c.rows, c.columns);
    return y;
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
  if (conv.has_slopes) return no("has a slope for each channel");
  // Each window makes its own: those that overlap would repeat it.
  if (conv.has_pre && !(conv.kernel == Ints(conv.rank(), 1) && conv.pads == Ints(2 * conv.rank(), 0)))
    return no("activates its operand first, and is no product of pixels", call.in(0).name);
  if (!w.constant) return no("weights are not constant", w.name);
  if (conv.rank() > 2) return no("has " + std::to_string(conv.rank()) + " spatial axes", w.name);
  if (w.constant->rank() != conv.rank() + 2) return no("weights do not fit kernel_shape", w.name);
  if (!std::equal(conv.kernel.begin(), conv.kernel.end(), w.constant->dims().begin() + 2))
    return no("weights do not fit kernel_shape", w.name);
  if (w.constant->elements() == 0) return no("weights are empty", w.name);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // numbers of a filter are counted in 32 bits
  if (w.constant->elements() > kMost) return no("weights are too many", w.name);
  return w.constant->dims()[0] % conv.group == 0 ? yes() : no("group does not divide the filters", w.name);
}

}  // namespace

const Kernel conv = {
    .op = "Conv",
    .name = "cuda.conv",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = product_seconds,
    .create = create<Conv>,
};

}  // namespace modelflow::cuda
