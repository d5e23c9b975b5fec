// Sorts the results of a transposed convolution by the inputs that they are made of.
#include "backends/ops/transposed_phases.h"

#include <algorithm>
#include <cmath>

#include "src/core/half.h"

namespace modelflow::ops {

WindowAxis window_axis(const TransposedWindows& windows, std::size_t i) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  return {size(windows.kernel[i]), size(windows.strides[i]), size(windows.pads[i]), windows.more(i)};
}

Phase WindowAxis::phase(std::size_t r) const {
  const std::size_t nearest = (pad + r) % stride;
  const std::size_t taps = nearest < kernel ? (kernel - nearest + stride - 1) / stride : 0;
  const auto last = static_cast<std::int64_t>((pad + r) / stride);  // input v + last is the last one in reach
  return {r, taps, last + 1 - static_cast<std::int64_t>(taps), nearest, stride};
}

std::vector<PhaseGroup> phase_groups(const WindowAxis& axis) {
  const auto stride = static_cast<std::int64_t>(axis.stride);
  const auto rest =
      static_cast<std::size_t>((axis.more % stride + stride) % stride);  // results behind the last whole v
  std::vector<PhaseGroup> groups;
  for (std::size_t r = 0; r < axis.stride; ++r) {
    const Phase phase = axis.phase(r);
    const bool alike = !groups.empty() && r != rest && phase.taps == groups.back().first.taps &&
                       phase.shift == groups.back().first.shift;
    alike ? void(++groups.back().size) : groups.push_back({phase, 1});
  }
  return groups;
}

Verdict accepts_phases(const TransposedWindows& windows, const Operand& w) {
  if (windows.apart()) return yes();
  const Tensor numbers = in_float32(*w.constant);
  if (!std::ranges::all_of(numbers.as<float>(), [](float weight) { return std::isfinite(weight); }))
    return no("holds a number that is not finite", w.name);
  std::int64_t phases = 1 << 16;
  for (const std::int64_t stride : windows.strides) phases /= stride;
  return phases > 0 ? yes() : no("the strides are too large");
}

}  // namespace modelflow::ops
