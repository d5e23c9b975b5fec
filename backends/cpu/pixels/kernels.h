// The ops that move or gather the pixels of images or weigh their channels, and their kernels.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::ops {
extern const FusedOp pool_op, pool_bf16_op, qpool_op, upsample_op, qupsample_op, concat_op, squeeze_excite_op,
    qsqueeze_excite_op, transpose_op;
}

namespace modelflow::cpu {

inline constexpr std::array kPixelOps = {&ops::pool_op,           &ops::pool_bf16_op,       &ops::qpool_op,
                                         &ops::upsample_op,       &ops::qupsample_op,       &ops::concat_op,
                                         &ops::squeeze_excite_op, &ops::qsqueeze_excite_op, &ops::transpose_op};

extern const Kernel pool, pool_bf16, qpool, upsample, qupsample, interpolate, concat, squeeze_excite, qsqueeze_excite,
    transpose;

inline constexpr std::array kPixelKernels = {
    &pool,        &pool_bf16, &qpool,          &upsample,        &qupsample,
    &interpolate, &concat,    &squeeze_excite, &qsqueeze_excite, &transpose,
};

}  // namespace modelflow::cpu
