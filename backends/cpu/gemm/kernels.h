// The ops and kernels of matrix products, best first within each op.
#pragma once

#include <array>

#include "backends/cpu/onednn/kernels.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {
extern const FusedOp matmul_op, matmul_bf16_op, matmul_to_bf16_op, qmatmul_op, qmatmul4_op, matmul_nbits_op;
}

namespace modelflow::cpu {

inline constexpr std::array kGemmOps = {&ops::matmul_op,  &ops::matmul_bf16_op, &ops::matmul_to_bf16_op,
                                        &ops::qmatmul_op, &ops::qmatmul4_op,    &ops::matmul_nbits_op};

extern const Kernel matmul_amx, matmul_avx512, matmul_avx2;
extern const Kernel matmul_bf16_amx, matmul_bf16_avx512, matmul_bf16_widened;
extern const Kernel matmul_to_bf16_amx, matmul_to_bf16_widened;
extern const Kernel qmatmul_amx, qmatmul_vnni, qmatmul_avx_vnni, qmatmul_avx2, qmatmul_any;
extern const Kernel qmatmul4_vnni, qmatmul4_avx_vnni, qmatmul4_avx2, qmatmul4_any;
extern const Kernel matmul_nbits_widened;

inline constexpr std::array kGemmKernels = {
    // MatMul
    &matmul_amx,
    &matmul_avx512,
    &matmul_avx2,
    &onednn_matmul,
    // MatMulBf16
    &matmul_bf16_amx,
    &onednn_matmul_bf16,
    &matmul_bf16_avx512,
    &matmul_bf16_widened,
    // MatMulToBf16
    &matmul_to_bf16_amx,
    &onednn_matmul_to_bf16,
    &matmul_to_bf16_widened,
    // QMatMul
    &qmatmul_amx,
    &qmatmul_vnni,
    &qmatmul_avx_vnni,
    &qmatmul_avx2,
    &qmatmul_any,
    // QMatMul4
    &qmatmul4_vnni,
    &qmatmul4_avx_vnni,
    &qmatmul4_avx2,
    &qmatmul4_any,
    // MatMulNBits
    &matmul_nbits_widened,
};

}  // namespace modelflow::cpu
