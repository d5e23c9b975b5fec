// What kernels of a GPU cost: arithmetic at the rate of tensor cores where they serve, bytes, and the launch.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// The oldest devices whose tensor cores kernels use.
inline constexpr int kTensorCores = 80;

/// Seconds of a call whose work FusedOp::flops counts.
double product_seconds(const Call& call, const Target& target);

}  // namespace modelflow::cuda
