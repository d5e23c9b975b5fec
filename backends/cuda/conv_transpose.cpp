// ConvTranspose on a GPU, over one to three axes: results are sorted by the pixels that they are made of, and weights
// laid out for the device once, when the session is made.
#include <algorithm>
#include <array>

#include "backends/call_attrs.h"
#include "backends/cuda/filters.h"
#include "backends/cuda/invocation.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/transposed_phases.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "ConvTranspose";

[[noreturn]] void fail(const char* why) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + why); }

std::int32_t small(std::size_t number) { return static_cast<std::int32_t>(number); }

/// An axis of the windows, and its results as they are sorted.
struct SortedAxis {
  ops::WindowAxis window;
  std::vector<ops::PhaseGroup> groups = ops::phase_groups(window);

  /// Over so many inputs.
  TransposedAxis over(std::int64_t in) const {
    TransposedAxis axis = {};
    axis.in = in, axis.out = window.extent(static_cast<std::size_t>(in));
    if (axis.out < 0) fail("the pads are larger than the result");
    axis.kernel = small(window.kernel), axis.stride = small(window.stride), axis.groups = small(groups.size());
    std::ranges::transform(groups, axis.group, [&](const ops::PhaseGroup& group) -> TransposedGroup {
      const ops::Phase& phase = group.first;
      const std::size_t places = ops::places(static_cast<std::size_t>(axis.out), phase.r, window.stride);
      return {static_cast<std::int64_t>(places),
              phase.shift,
              small(phase.r),
              small(group.size),
              small(phase.taps),
              small(phase.nearest)};
    });
    return axis;
  }
};

class ConvTranspose : public Implementation {
 public:
  ConvTranspose(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library),
        target_(target),
        has_bias_(CallAttrs(call).flag("has_bias")),
        activation_(activation_of(call)),
        channels_(call.in(1).constant->dims()[0]),
        filters_(call.in(1).constant->dims()[1]),
        first_(axes_.size() - (call.in(1).constant->rank() - 2)),
        w_(uploaded(library, turned(*call.in(1).constant, true))) {
    const ops::TransposedWindows windows = ops::transposed_windows(call);
    for (std::size_t i = 0; i < windows.axes(); ++i) axes_[first_ + i] = {ops::window_axis(windows, i)};
  }

  void run(Invocation& call) const override {
    if (call.inputs() != (has_bias_ ? 3U : 2U)) fail("wrong number of inputs");
    ConvTransposeLaunch c = {};
    c.number = shared_number(kOp, call);
    const Dims y = read(call.input(0).dims, c);
    c.epilogue.scale = 1;
    c.epilogue.activation = activation_;
    if (has_bias_) {
      const View bias = call.input(2);
      if (bias.dims.size() != 1 || bias.dims[0] != filters_) fail("bias does not fit the result");
      c.epilogue.bias = bias.data;
    }
    c.x = call.input(0).data;
    c.w = w_.data();
    c.y = call.output(0, y);
    if (element_count(y) == 0) return;
    c.tensor_cores = c.number != Number::f32 && target_.sm >= kTensorCores;
    c.large = large_tiles(c);
    check(kOp, library_.conv_transpose(c, call.stream()));
  }

 private:
  /// Geometry from x; one axis is an image of one row, two are one plane of a volume.
  Dims read(std::span<const std::int64_t> x, ConvTransposeLaunch& c) const {
    if (x.size() != axes_.size() - first_ + 2) fail("x is not of the rank of the weights");
    if (x.back() != channels_) fail("x has other channels than the weights");
    c.batch = x[0], c.channels = static_cast<std::int32_t>(channels_), c.filters = static_cast<std::int32_t>(filters_);
    Dims y(x.begin(), x.end());
    y.back() = filters_;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      c.axis[i] = axes_[i].over(i < first_ ? 1 : x[i - first_ + 1]);
      if (i >= first_) y[i - first_ + 1] = c.axis[i].out;
    }
    return y;
  }

  /// Whether there are enough tiles of 128 x 128 for all multiprocessors.
  bool large_tiles(const ConvTransposeLaunch& c) const {
    std::int64_t tiles = 0;
    for (int i = 0; i < parts_of(c); ++i) tiles += tiles_of(c, part_of(c, i), 128, 128);
    return tiles >= target_.cores;
  }

  const DeviceLibrary& library_;
  Target target_;
  bool has_bias_;
  ActivationSpec activation_;
  std::int64_t channels_, filters_;
  std::array<SortedAxis, 3> axes_;
  std::size_t first_;  ///< of them that x has
  DeviceMemory w_;
};

Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_numbers(call); !verdict) return verdict;
  const Operand& w = call.in(1);
  if (!w.constant) return no("weights are not constant", w.name);
  if (w.constant->rank() < 3 || w.constant->rank() > 5)
    return no("has " + std::to_string(w.constant->rank()) + " axes, not 3 to 5", w.name);
  if (w.constant->elements() == 0) return no("weights are empty", w.name);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // counted in 32 bits, as the results of one pixel
  if (w.constant->elements() > kMost) return no("weights are too many", w.name);
  const ops::TransposedWindows windows = ops::transposed_windows(call);
  if (Verdict verdict = windows.check(); !verdict) return verdict;
  if (Verdict verdict = ops::accepts_phases(windows, w); !verdict) return verdict;
  std::int64_t filters = kMost;
  for (const std::int64_t stride : windows.strides) filters /= stride;
  return w.constant->dims()[1] <= filters ? yes() : no("the strides are too large");
}

}  // namespace

const Kernel conv_transpose = {
    .op = "ConvTranspose",
    .name = "cuda.conv_transpose",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = product_seconds,
    .create = create<ConvTranspose>,
};

}  // namespace modelflow::cuda
