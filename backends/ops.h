// Every fused op of this build, one file each in backends/ops.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::ops {

extern const FusedOp conv_op;
extern const FusedOp matmul_op;
extern const FusedOp activation_op;
extern const FusedOp squeeze_excite_op;
extern const FusedOp pool_op;
extern const FusedOp upsample_op;
extern const FusedOp conv_transpose_op;
extern const FusedOp concat_op;
extern const FusedOp pointwise_op;
extern const FusedOp layer_norm_op;
extern const FusedOp group_norm_op;
extern const FusedOp attention_op;
extern const FusedOp rotary_op;
extern const FusedOp softmax_op;
extern const FusedOp embedding_op;
extern const FusedOp reduce_op;
extern const FusedOp lstm_op;
extern const FusedOp gru_op;
extern const FusedOp matmul_bf16_op;
extern const FusedOp matmul_to_bf16_op;
extern const FusedOp conv_bf16_op;
extern const FusedOp conv_to_bf16_op;
extern const FusedOp pool_bf16_op;
extern const FusedOp qconv_op;
extern const FusedOp qmatmul_op;
extern const FusedOp qmatmul4_op;
extern const FusedOp qattention_op;
extern const FusedOp attention_bf16_op;
extern const FusedOp qlstm_op;
extern const FusedOp qgru_op;
extern const FusedOp qconv_transpose_op;
extern const FusedOp qconv_transpose_float_op;
extern const FusedOp qpool_op;
extern const FusedOp qadd_op;
extern const FusedOp qupsample_op;
extern const FusedOp qsqueeze_excite_op;
extern const FusedOp quantize_op;
extern const FusedOp dequantize_op;

}  // namespace modelflow::ops
