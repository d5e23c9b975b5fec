// The shape rule of transposed convolutions.
#pragma once

#include "backends/ops/transposed_windows.h"

namespace modelflow::ops {

/// Output 0 of a transposed convolution with these windows, from inputs 0 (x) and 1 (weights, [C, M, kernel]); `last`:
/// channels of x and y stand last, else second.
Verdict infer_conv_transpose(Call& call, const TransposedWindows& windows, bool last, DType result);

}  // namespace modelflow::ops
