// The kernels of ops that move or gather the pixels of images, and of what weighs their channels.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

extern const Kernel pool, pool_bf16, qpool, upsample, qupsample, concat, squeeze_excite, qsqueeze_excite;

inline constexpr std::array kPixelKernels = {
    &pool, &pool_bf16, &qpool, &upsample, &qupsample, &concat, &squeeze_excite, &qsqueeze_excite,
};

}  // namespace modelflow::cpu
