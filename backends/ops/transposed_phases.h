// Which inputs the results of a transposed convolution are made of, along one axis, for kernels of all devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/ops/transposed_windows.h"

namespace modelflow::ops {

/// The results at stride * v + r for v = 0, 1, ..., with one r, which see the same taps of the window: x[v + shift + i]
/// for i < taps, tap(i) being what it is multiplied by.
struct Phase {
  std::size_t r, taps;
  std::int64_t shift;
  std::size_t nearest, stride;  ///< the last input's tap; those in front of it are a stride apart

  std::size_t tap(std::size_t i) const { return nearest + stride * (taps - 1 - i); }
};

/// One axis of the windows.
struct WindowAxis {
  std::size_t kernel = 1, stride = 1, pad = 0;
  std::int64_t more = 0;  ///< extent of the result = stride * extent of the input + more

  Phase phase(std::size_t r) const;
  std::int64_t extent(std::size_t in) const {
    return static_cast<std::int64_t>(stride) * static_cast<std::int64_t>(in) + more;
  }
};

/// Axis `i` of windows that are checked.
WindowAxis window_axis(const TransposedWindows& windows, std::size_t i);

/// Neighbouring phases with the same inputs and, whatever the extent, as many results each.
struct PhaseGroup {
  Phase first;
  std::size_t size;
};

/// Not more than four: along r the nearest tap begins anew once, the number of taps falls once, and so does that of
/// results.
std::vector<PhaseGroup> phase_groups(const WindowAxis& axis);

/// A no for windows that overlap where results cannot be sorted so: phases are too many, or a weight is not finite,
/// which zeros beside the border would make NaN of.
Verdict accepts_phases(const TransposedWindows& windows, const Operand& w);

/// How many places stride * v + r there are below `extent`.
constexpr std::size_t places(std::size_t extent, std::size_t r, std::size_t stride) {
  return extent > r ? (extent - r + stride - 1) / stride : 0;
}

}  // namespace modelflow::ops
