// A call of ConvTranspose in numbers.
#pragma once

#include <array>

#include "backends/activation.h"
#include "backends/ops/transposed_phases.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

using ops::Phase, ops::PhaseGroup, ops::WindowAxis, ops::phase_groups, ops::places;

/// Extents as memory counts them, and places that may lie in front of it.
constexpr std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
constexpr std::int64_t number(std::size_t n) { return static_cast<std::int64_t>(n); }
constexpr bool inside(std::int64_t place, std::size_t extent) { return place >= 0 && place < number(extent); }

/// One run of it, y allocated; extents are depth, height and width. Every output line is cut into rows (as many results
/// as the stride each), which several threads may share.
struct ConvTransposeRun {
  const float* x = nullptr;
  float* y = nullptr;
  std::size_t batch = 0, rows = 0, cuts = 1;
  std::array<std::size_t, 3> in = {1, 1, 1}, out = {1, 1, 1};

  std::size_t lines() const { return batch * out[0] * out[1]; }
  std::size_t rows_of_cut() const { return (rows + cuts - 1) / cuts; }
  std::size_t first_row(std::size_t cut) const { return rows * cut / cuts; }
};

/// What its attributes and weights say; one axis is seen as an image of one row, two as one plane of a volume.
struct ConvTransposeNode {
  explicit ConvTransposeNode(const Call& call);

  std::size_t axes, channels, m;
  std::array<WindowAxis, 3> axis;
  std::vector<float> bias;  ///< of `m` channels, or none
  ActivationSpec activation;
  std::string layout;  ///< what packed weights depend on besides the weights

  /// Checks x and makes y; throws Error(invalid_input) when they do not fit.
  ConvTransposeRun read(Invocation& call) const;
  /// Cuts lines into at most `most` rows, and further for threads down to `least`; returns how many tasks it is worth.
  std::size_t cut(ConvTransposeRun& run, const Invocation& call, std::size_t most, std::size_t least) const;
  /// An input line; null where it is outside of x.
  const float* line(const ConvTransposeRun& run, std::size_t image, std::int64_t d, std::int64_t h) const;
};

}  // namespace modelflow::cpu
