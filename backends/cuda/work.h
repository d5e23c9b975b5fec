// What kernels of a GPU cost: arithmetic at the rate of tensor cores where they serve, bytes, and the launch.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// The oldest devices whose tensor cores kernels use.
inline constexpr int kTensorCores = 80;
/// What hand-written tiles are expected to reach of the peak. Not measured on a device yet.
inline constexpr double kTensorShare = 0.4, kPlainShare = 0.5;

/// Seconds of a call whose work FusedOp::flops counts.
double product_seconds(const Call& call, const Target& target);
/// And so many operations in plain arithmetic, which do not overlap with them.
double product_seconds_beside(double flops, const Call& call, const Target& target);

}  // namespace modelflow::cuda
