// Axes of a tensor whose order changes, for kernels of any device.
#pragma once

#include <span>
#include <vector>

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// An axis of y: how long it is, and numbers from one index to the next in x and in y.
struct MovedAxis {
  std::size_t extent, x, y;
};

/// The axes of y, outermost first, neighbours in x and y as one and without those of extent 1; the last may be missing:
/// one number.
std::vector<MovedAxis> moved_axes(std::span<const std::int64_t> dims, const Ints& perm);

}  // namespace modelflow::ops
