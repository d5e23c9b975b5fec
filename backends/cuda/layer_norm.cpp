// LayerNorm on a GPU: one pass over the operands at the bandwidth of the device's memory.
#include <algorithm>
#include <numeric>

#include "backends/call_attrs.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launches/shared_memory.h"
#include "backends/cuda/library.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "LayerNorm";

class LayerNorm : public Implementation {
 public:
  LayerNorm(const Call& call, const DeviceLibrary& library)
      : library_(library),
        rms_(CallAttrs(call).flag("rms")),
        residual_(CallAttrs(call).text("residual") != "none"),
        after_(CallAttrs(call).text("residual") == "after"),
        keep_sum_(CallAttrs(call).flag("keep_sum")),
        axes_(static_cast<std::size_t>(-CallAttrs(call).integer("axis"))),
        epsilon_(CallAttrs(call).number("epsilon")) {}

  void run(Invocation& call) const override {
    if (call.inputs() != 2U + (rms_ ? 0 : 1) + (residual_ ? 1 : 0)) fail("wrong number of inputs");
    LayerNormLaunch launch = {};
    launch.number = shared_number(kOp, call);
    std::vector<std::span<const std::int64_t>> dims = {call.input(0).dims};
    if (residual_) dims.push_back(call.input(call.inputs() - 1).dims);
    const Broadcast shape(kOp, dims);
    const std::span<const std::int64_t> y = shape.dims();
    if (after_ && !std::ranges::equal(call.input(0).dims, call.input(call.inputs() - 1).dims))
      fail("residual is not of the shape of x");
    if (y.size() < axes_) fail("x has fewer axes than are normalized");
    for (std::size_t i = 1; i < (rms_ ? 2U : 3U); ++i) {
      if (!std::ranges::equal(call.input(i).dims, y.last(axes_))) fail("scale or bias does not fit x");
    }
    launch.y = call.output(0, y);
    if (keep_sum_) launch.sum = call.output(1, y);
    if (shape.elements() == 0) return;
    launch.n = std::reduce(y.end() - static_cast<std::ptrdiff_t>(axes_), y.end(), std::int64_t{1}, std::multiplies());
    launch.rows = static_cast<std::int64_t>(shape.elements()) / launch.n;
    launch.x = call.input(0).data;
    launch.scale = call.input(1).data;
    if (!rms_) launch.bias = call.input(2).data;
    if (residual_) launch.residual = call.input(call.inputs() - 1).data;
    launch.after = after_;
    launch.epsilon = epsilon_;
    launch.places = places_of(kOp, shape, dims.size());
    check(kOp, library_.layer_norm(launch, call.stream()));
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what);
  }

  const DeviceLibrary& library_;
  bool rms_, residual_, after_, keep_sum_;
  std::size_t axes_;
  float epsilon_;
};

/// A block keeps one row in the memory that its threads share.
Verdict accepts(const Call& call, const Target& target) {
  if (Verdict verdict = accepts_numbers(call); !verdict) return verdict;
  if (Verdict verdict = accepts_axes(call); !verdict) return verdict;
  const std::int64_t axis = CallAttrs(call).integer("axis");
  const Shape& x = call.in(0).shape;
  if (axis >= 0 || !x.has_rank() || x.rank() < static_cast<std::size_t>(-axis)) return no("axis is not negative");
  const auto axes = static_cast<std::size_t>(-axis);
  std::int64_t n = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    const Dim &here = x[x.rank() - axes + i], &there = call.in(1).shape.has_rank() ? call.in(1).shape[i] : here;
    if (!here.known() && !there.known()) return no("the length of a row is unknown", call.in(0).name);
    n *= here.known() ? here.value() : there.value();
  }
  return fits_shared(4 * n, target.l1) ? yes() : no("a row does not fit into shared memory", call.in(0).name);
}

}  // namespace

const Kernel layer_norm = {
    .op = "LayerNorm",
    .name = "cuda.layer_norm",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = moving_seconds,
    .create = create<LayerNorm>,
};

}  // namespace modelflow::cuda
