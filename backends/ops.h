// Every fused op of this build, one file each in backends/ops.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::ops {

extern const FusedOp conv_op, matmul_op, activation_op, squeeze_excite_op, pool_op, upsample_op, conv_transpose_op,
    concat_op, pointwise_op, layer_norm_op, group_norm_op, attention_op, rotary_op, softmax_op, embedding_op, reduce_op,
    lstm_op, gru_op, matmul_bf16_op, matmul_to_bf16_op, conv_bf16_op, conv_to_bf16_op, pool_bf16_op, qconv_op,
    qmatmul_op, qmatmul4_op, qattention_op, attention_bf16_op, qlstm_op, qgru_op, qconv_transpose_op,
    qconv_transpose_float_op, qpool_op, qadd_op, qupsample_op, qsqueeze_excite_op, quantize_op, dequantize_op;

/// In the order of `optimize --list`.
inline constexpr std::array kFusedOps = {
    &conv_op,      &matmul_op,       &activation_op,      &squeeze_excite_op,
    &pool_op,      &upsample_op,     &conv_transpose_op,  &concat_op,
    &pointwise_op, &layer_norm_op,   &group_norm_op,      &attention_op,
    &rotary_op,    &softmax_op,      &embedding_op,       &reduce_op,
    &lstm_op,      &gru_op,          &matmul_bf16_op,     &matmul_to_bf16_op,
    &conv_bf16_op, &conv_to_bf16_op, &pool_bf16_op,       &qconv_op,
    &qmatmul_op,   &qmatmul4_op,     &qattention_op,      &attention_bf16_op,
    &qlstm_op,     &qgru_op,         &qconv_transpose_op, &qconv_transpose_float_op,
    &qpool_op,     &qadd_op,         &qupsample_op,       &qsqueeze_excite_op,
    &quantize_op,  &dequantize_op,
};

}  // namespace modelflow::ops
