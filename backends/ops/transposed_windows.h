// The windows of a transposed convolution: extents, strides, pads, and what the result has beyond them.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// An entry for each spatial axis; of pads those in front of all axes, then those behind them. Input i of an axis adds
/// its window to the results i * stride - pad .. i * stride - pad + kernel - 1.
struct TransposedWindows {
  Ints kernel, strides, pads, output_padding;

  std::size_t axes() const { return strides.size(); }
  /// A no when there is not an entry for each axis, or one is out of range.
  Verdict check() const;
  /// True where they lie side by side and make up the result.
  bool apart() const;
  /// What an axis of the result has more than stride times that of the input; may be negative.
  std::int64_t more(std::size_t axis) const;
};

/// Those of a call of ConvTranspose; the kernel is that of its weights, none where their extents are unknown. Pads and
/// output_padding that the call does not say are 0.
TransposedWindows transposed_windows(const Call& call);

}  // namespace modelflow::ops
