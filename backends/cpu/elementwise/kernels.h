// The kernels of elementwise ops.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

extern const Kernel activation, pointwise, qadd, quantize, dequantize;

inline constexpr std::array kElementwiseKernels = {
    &activation, &pointwise, &qadd, &quantize, &dequantize,
};

}  // namespace modelflow::cpu
