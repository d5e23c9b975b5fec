// What a call of Upsample that interpolates makes of the extents of an image, for kernels of any device.
#pragma once

#include <span>

#include "backends/taps.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

/// Images, each with its numbers of a pixel side by side: channels first, every channel is an image of its own.
struct Resized {
  std::int64_t images = 0, channels = 1;
  ResizedAxis high, wide;
  bool flat = false;        ///< of one axis: `high` is none
  Dims dims;                ///< of the result
  std::size_t numbers = 0;  ///< in it

  /// Whether the result is x, as in ONNX Runtime by any scales that change no extent: no number is multiplied, 0 * inf
  /// would be NaN.
  bool same() const { return high.from == high.to && wide.from == wide.to; }
};

class Resizing {
 public:
  explicit Resizing(const Call& call);
  const Interpolation& how() const { return how_; }
  /// By `sizes`, one for each axis, or where that is empty by the scales of the call. Throws Error(invalid_input).
  Resized of(std::span<const std::int64_t> x, std::span<const std::int64_t> sizes) const;

 private:
  ResizedAxis axis(std::int64_t from, std::size_t index, std::span<const std::int64_t> sizes) const;

  Floats scales_;
  bool last_;
  Interpolation how_;
};

/// A no for what no kernel interpolates, whatever its numbers are.
Verdict accepts_resizing(const Call& call);

}  // namespace modelflow::ops
