// The kernels of ops that work row by row: norms, softmax, reductions, rotary position and token embedding.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

extern const Kernel layer_norm, group_norm, softmax, reduce, rotary, embedding;

inline constexpr std::array kRowKernels = {
    &layer_norm, &group_norm, &softmax, &reduce, &rotary, &embedding,
};

}  // namespace modelflow::cpu
