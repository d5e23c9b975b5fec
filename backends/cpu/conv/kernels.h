// The ops and kernels of convolutions, best first within each op.
#pragma once

#include <array>

#include "backends/cpu/onednn/kernels.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {
extern const FusedOp conv_op, conv_bf16_op, conv_to_bf16_op, conv_transpose_op;
}

namespace modelflow::cpu {

inline constexpr std::array kConvOps = {&ops::conv_op, &ops::conv_bf16_op, &ops::conv_to_bf16_op,
                                        &ops::conv_transpose_op};

extern const Kernel conv_depthwise_avx512, conv_winograd_avx512, conv_pixels_amx, conv_dense_avx512;
extern const Kernel conv_depthwise_avx2, conv_winograd_avx2, conv_dense_avx2;
extern const Kernel conv_bf16_amx, conv_bf16_widened;
extern const Kernel conv_to_bf16_amx, conv_to_bf16_widened;
extern const Kernel conv_transpose_avx512, conv_transpose_avx2;

inline constexpr std::array kConvKernels = {
    // Conv
    &conv_depthwise_avx512,
    &conv_winograd_avx512,
    &conv_pixels_amx,
    &conv_dense_avx512,
    &conv_depthwise_avx2,
    &conv_winograd_avx2,
    &conv_dense_avx2,
    &onednn_conv,
    // ConvBf16
    &conv_bf16_amx,
    &onednn_conv_bf16,
    &conv_bf16_widened,
    // ConvToBf16
    &conv_to_bf16_amx,
    &onednn_conv_to_bf16,
    &conv_to_bf16_widened,
    // ConvTranspose
    &conv_transpose_avx512,
    &conv_transpose_avx2,
};

}  // namespace modelflow::cpu
