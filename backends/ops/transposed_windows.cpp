// Reads the windows of a transposed convolution, and checks them.
#include "backends/ops/transposed_windows.h"

#include <algorithm>
#include <limits>

#include "backends/call_attrs.h"

namespace modelflow::ops {
namespace {

bool between(const Ints& values, std::int64_t least) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return std::ranges::all_of(values, [&](std::int64_t v) { return v >= least && v <= kMost; });
}

bool zero(const Ints& values) {
  return std::ranges::all_of(values, [](std::int64_t v) { return v == 0; });
}

}  // namespace

Verdict TransposedWindows::check() const {
  if (kernel.size() != axes() || axes() == 0) return no("not a stride for each axis of the window");
  if (pads.size() != 2 * axes()) return no("not two pads for each axis of the window");
  if (output_padding.size() != axes()) return no("not an output_padding for each axis of the window");
  if (!between(kernel, 1)) return no("a window is empty or too large");
  if (!between(strides, 1)) return no("a stride is not positive");
  if (!between(pads, 0)) return no("a pad is negative or too large");
  for (std::size_t i = 0; i < axes(); ++i) {
    if (output_padding[i] < 0 || output_padding[i] >= strides[i])
      return no("an output_padding is not below the stride");
  }
  return yes();
}

bool TransposedWindows::apart() const { return kernel == strides && zero(pads) && zero(output_padding); }

std::int64_t TransposedWindows::more(std::size_t axis) const {
  return kernel[axis] - strides[axis] - pads[axis] - pads[axis + axes()] + output_padding[axis];
}

TransposedWindows transposed_windows(const Call& call) {
  const CallAttrs attrs(call);
  TransposedWindows windows{{}, attrs.ints("strides"), attrs.ints("pads"), attrs.ints("output_padding")};
  const Shape& w = call.in(1).shape;
  if (w.known() && w.rank() > 2) {
    const Dims dims = w.values();
    windows.kernel.assign(dims.begin() + 2, dims.end());
  }
  if (windows.pads.empty()) windows.pads.assign(2 * windows.axes(), 0);
  if (windows.output_padding.empty()) windows.output_padding.assign(windows.axes(), 0);
  return windows;
}

}  // namespace modelflow::ops
