// Transpose on a GPU: rows that stay together are copied whole, else tiles are turned.
#include <algorithm>
#include <string>

#include "backends/call_attrs.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/moved_axes.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "Transpose";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what); }

using Axes = std::vector<ops::MovedAxis>;

TransposeLaunch::Axis launched(const ops::MovedAxis& axis) {
  return {static_cast<std::int64_t>(axis.extent), static_cast<std::int64_t>(axis.x), static_cast<std::int64_t>(axis.y)};
}

constexpr std::int64_t kSide = 32;

/// A tile is read and written in runs of so many numbers; where an axis has fewer, the other side is as much longer.
void cut_into_tiles(TransposeLaunch& launch) {
  const auto side = [](std::int64_t extent, std::int64_t other) {
    return static_cast<std::int32_t>(std::min(extent, kSide * kSide / std::min(other, kSide)));
  };
  launch.high = side(launch.rows.extent, launch.columns.extent);
  launch.wide = side(launch.columns.extent, launch.rows.extent);
}

/// How the numbers move that a launch has not been told of yet.
void describe(Axes axes, TransposeLaunch& launch) {
  if (axes.empty()) {
    launch.row = 1;
    return;
  }
  const ops::MovedAxis last = axes.back();
  axes.pop_back();
  if (last.x == 1) {
    launch.row = static_cast<std::int64_t>(last.extent);
  } else {
    const auto side_by_side = std::ranges::find(axes, std::size_t{1}, &ops::MovedAxis::x);
    launch.rows = launched(last), launch.columns = launched(*side_by_side);
    axes.erase(side_by_side);
    cut_into_tiles(launch);
  }
  for (const ops::MovedAxis& axis : axes) launch.outer[launch.axes++] = launched(axis);
}

class Transpose : public Implementation {
 public:
  Transpose(const Call& call, const DeviceLibrary& library) : library_(library), perm_(CallAttrs(call).ints("perm")) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    const std::optional<Number> number = number_of(x.dtype);
    if (!number) fail("x is of another type");
    if (x.dims.size() != perm_.size()) fail("perm does not fit x");
    Dims y;
    for (const std::int64_t axis : perm_) y.push_back(x.dims[static_cast<std::size_t>(axis)]);
    TransposeLaunch launch = {};
    launch.bytes = static_cast<std::int32_t>(bytes_of(*number));
    launch.x = x.data;
    launch.y = call.output(0, y);
    if (element_count(y) == 0) return;
    Axes axes = ops::moved_axes(x.dims, perm_);
    if (axes.size() > TransposeLaunch::kAxes) throw Error(ErrorKind::unsupported, "Transpose: too many axes");
    describe(std::move(axes), launch);
    check(kOp, library_.transpose(launch, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  Ints perm_;
};

Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_axes(call); !verdict) return verdict;
  return accepts_numbers(call);
}

}  // namespace

const Kernel transpose = {
    .op = kOp,
    .name = "cuda.transpose",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = moving_seconds,
    .create = create<Transpose>,
};

}  // namespace modelflow::cuda
