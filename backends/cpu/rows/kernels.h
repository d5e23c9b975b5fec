// The ops that work row by row (norms, softmax, reductions, rotary position, embedding, sums by index) and their
// kernels.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::ops {
extern const FusedOp layer_norm_op, group_norm_op, softmax_op, reduce_op, rotary_op, embedding_op, scatter_add_op,
    column_embedding_op;
}

namespace modelflow::cpu {

inline constexpr std::array kRowOps = {&ops::layer_norm_op,  &ops::group_norm_op,      &ops::softmax_op,
                                       &ops::reduce_op,      &ops::rotary_op,          &ops::embedding_op,
                                       &ops::scatter_add_op, &ops::column_embedding_op};

extern const Kernel layer_norm, group_norm, softmax, reduce, rotary, embedding, scatter_add, column_embedding;

inline constexpr std::array kRowKernels = {
    &layer_norm, &group_norm, &softmax, &reduce, &rotary, &embedding, &scatter_add, &column_embedding,
};

}  // namespace modelflow::cpu
