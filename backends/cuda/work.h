// What kernels of a GPU cost: arithmetic at the rate of tensor cores where they serve, bytes, and the launch.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// The oldest devices whose tensor cores kernels use.
inline constexpr int kTensorCores = 80;

/// Seconds of a call that waits for memory alone: operands and results move once.
double moving_seconds(const Call& call, const Target& target);
/// Seconds of a call whose work FusedOp::flops counts.
double product_seconds(const Call& call, const Target& target);
/// The same where factors are of this type, whatever x is, and with so many operations in plain arithmetic beside them,
/// which do not overlap.
double product_seconds_in(DType factors, double beside, const Call& call, const Target& target);

}  // namespace modelflow::cuda
