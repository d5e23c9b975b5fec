// How much of what a convolution reads is padding: counted by axis, from the attributes and the extents that are known.
#include "backends/cpu/conv/padding.h"

#include <algorithm>

#include "backends/cpu/conv/problem.h"

namespace modelflow::cpu {
namespace {

Dim extent_of(const Shape& x, const ops::ConvAttrs& conv, std::size_t axis) {
  return x.has_rank() && x.rank() == conv.rank() + 2 ? x[axis + (conv.x_last ? 1 : 2)] : Dim();
}

/// A pixel is copied in a fraction of the time that its products take.
constexpr double kMostCopied = 4;

/// Pixels that a window may span in an image of unknown extents, which may be a small one.
constexpr double kMostReach = 1 << 16;

}  // namespace

double inside_share(const Call& call) {
  const ops::ConvAttrs conv(call);
  const Shape& x = call.in(0).shape;
  double share = 1;
  for (std::size_t i = 0; i < conv.rank(); ++i) {
    const Dim extent = extent_of(x, conv, i);
    if (!extent.known()) return 1;
    const std::int64_t out = conv.extent(i, extent.value());
    std::int64_t read = 0;
    for (std::int64_t k = 0; k < conv.kernel[i]; ++k) {  // windows y where 0 <= y * stride - before < extent
      const std::int64_t before = conv.pads[i] - k * conv.dilations[i], stride = conv.strides[i];
      const std::int64_t first = before > 0 ? ceil_div(before, stride) : 0;
      const std::int64_t end = extent.value() + before > 0 ? ceil_div(extent.value() + before, stride) : 0;
      read += std::max<std::int64_t>(std::min(end, out) - first, 0);
    }
    if (out > 0) share *= static_cast<double>(read) / static_cast<double>(out * conv.kernel[i]);
  }
  return share;
}

Verdict accepts_copy(const Call& call) {
  const ops::ConvAttrs conv(call);
  double copied = 1, image = 1, read = 1, reach = 1;
  bool known = true;
  for (std::size_t i = 0; i < conv.rank(); ++i) {
    const Dim extent = extent_of(call.in(0).shape, conv, i);
    known = known && extent.known();
    const std::int64_t window = (conv.kernel[i] - 1) * conv.dilations[i] + 1;
    // Unknown images may be small: then strides and borders are what is copied.
    reach *= static_cast<double>(
        conv.kernel[i] == 1 ? 1 : std::max({window, conv.strides[i], conv.pads[i], conv.pads[i + conv.rank()]}));
    if (!known) continue;
    const std::int64_t out = conv.extent(i, extent.value());
    if (out < 1) return yes();
    copied *= static_cast<double>(conv.kernel[i] == 1 ? out : (out - 1) * conv.strides[i] + window);
    image *= static_cast<double>(extent.value());
    read *= static_cast<double>(out * conv.kernel[i]);
  }
  if (!known && reach > kMostReach) return no("windows span far more than images may have", call.in(0).name);
  if (known && copied > kMostCopied * (image + read)) return no("would copy much padding", call.in(0).name);
  return yes();
}

}  // namespace modelflow::cpu
