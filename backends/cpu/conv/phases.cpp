// Sorts the results of a transposed convolution by the inputs that they are made of.
#include "backends/cpu/conv/phases.h"

namespace modelflow::cpu {

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

}  // namespace modelflow::cpu
