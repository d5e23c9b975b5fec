// The ops and kernels of 8-bit convolutions, best first within each op.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::ops {
extern const FusedOp qconv_op, qconv_transpose_op, qconv_transpose_float_op;
}

namespace modelflow::cpu {

inline constexpr std::array kQConvOps = {&ops::qconv_op, &ops::qconv_transpose_op, &ops::qconv_transpose_float_op};

extern const Kernel qconv_depthwise_vnni, qconv_dense_amx, qconv_dense_vnni;
extern const Kernel qconv_depthwise_avx2, qconv_dense_avx_vnni, qconv_dense_avx2, qconv_any;
extern const Kernel qconv_volume_vnni, qconv_volume_avx_vnni, qconv_volume_avx2;
extern const Kernel qconv_transpose_vnni, qconv_transpose_avx_vnni, qconv_transpose_avx2, qconv_transpose_any;
extern const Kernel qconv_transpose_float_vnni, qconv_transpose_float_avx_vnni, qconv_transpose_float_avx2,
    qconv_transpose_float_any;

inline constexpr std::array kQConvKernels = {
    // QConv
    &qconv_depthwise_vnni,
    &qconv_dense_amx,
    &qconv_dense_vnni,
    &qconv_volume_vnni,
    &qconv_depthwise_avx2,
    &qconv_dense_avx_vnni,
    &qconv_dense_avx2,
    &qconv_volume_avx_vnni,
    &qconv_volume_avx2,
    &qconv_any,
    // QConvTranspose
    &qconv_transpose_vnni,
    &qconv_transpose_avx_vnni,
    &qconv_transpose_avx2,
    &qconv_transpose_any,
    // QConvTransposeFloat
    &qconv_transpose_float_vnni,
    &qconv_transpose_float_avx_vnni,
    &qconv_transpose_float_avx2,
    &qconv_transpose_float_any,
};

}  // namespace modelflow::cpu
