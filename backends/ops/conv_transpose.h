// The shape rule of transposed convolutions.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// Output 0 of a transposed convolution whose windows do not overlap (strides are the extents of the window), from
/// inputs 0 (x) and 1 (weights, [C, M, kernel]); `last`: channels of x and y stand last, else second.
Verdict infer_conv_transpose(Call& call, bool last, DType result);

}  // namespace modelflow::ops
