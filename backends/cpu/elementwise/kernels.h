// The elementwise ops and their kernels.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::ops {
extern const FusedOp activation_op, pointwise_op, pointwise_scan_op, qadd_op, quantize_op, dequantize_op;
}

namespace modelflow::cpu {

inline constexpr std::array kElementwiseOps = {&ops::activation_op, &ops::pointwise_op, &ops::pointwise_scan_op,
                                               &ops::qadd_op,       &ops::quantize_op,  &ops::dequantize_op};

extern const Kernel activation, pointwise, pointwise_scan, qadd, quantize, dequantize;

inline constexpr std::array kElementwiseKernels = {
    &activation, &pointwise, &pointwise_scan, &qadd, &quantize, &dequantize,
};

}  // namespace modelflow::cpu
