#pragma once

#include "modelflow/kernel.h"

/// Every CPU kernel of this build, one file each in backends/cpu. The table in kernels.cpp lists them, best first.
namespace modelflow::cpu {

extern const Kernel conv_depthwise_avx512;
extern const Kernel conv_winograd_avx512;
extern const Kernel conv_dense_avx512;
extern const Kernel onednn_conv;
extern const Kernel matmul_amx;
extern const Kernel matmul_avx512;
extern const Kernel onednn_matmul;
extern const Kernel activation;
extern const Kernel squeeze_excite;
extern const Kernel pool;
extern const Kernel upsample;
extern const Kernel conv_transpose_avx512;
extern const Kernel concat;
extern const Kernel pointwise;
extern const Kernel layer_norm;
extern const Kernel group_norm;
extern const Kernel attention_avx512;
extern const Kernel attention_any;
extern const Kernel rotary;
extern const Kernel softmax;
extern const Kernel embedding;
extern const Kernel reduce;
extern const Kernel lstm_avx512;
extern const Kernel lstm_any;
extern const Kernel gru_avx512;
extern const Kernel gru_any;
extern const Kernel matmul_bf16_amx;
extern const Kernel onednn_matmul_bf16;
extern const Kernel matmul_bf16_avx512;
extern const Kernel matmul_bf16_widened;
extern const Kernel conv_bf16_amx;
extern const Kernel onednn_conv_bf16;
extern const Kernel conv_bf16_widened;
extern const Kernel matmul_to_bf16_amx;
extern const Kernel onednn_matmul_to_bf16;
extern const Kernel matmul_to_bf16_widened;
extern const Kernel conv_to_bf16_amx;
extern const Kernel onednn_conv_to_bf16;
extern const Kernel conv_to_bf16_widened;
extern const Kernel pool_bf16;
extern const Kernel qconv_depthwise_vnni;
extern const Kernel qconv_dense_amx;
extern const Kernel qconv_dense_vnni;
extern const Kernel qconv_any;
extern const Kernel qmatmul_amx;
extern const Kernel qmatmul_vnni;
extern const Kernel qmatmul_any;
extern const Kernel qattention_vnni;
extern const Kernel qattention_any;
extern const Kernel attention_bf16_amx;
extern const Kernel attention_bf16_any;
extern const Kernel qmatmul4_vnni;
extern const Kernel qmatmul4_any;
extern const Kernel qlstm_vnni;
extern const Kernel qlstm_any;
extern const Kernel qgru_vnni;
extern const Kernel qgru_any;
extern const Kernel qconv_transpose_vnni, qconv_transpose_float_vnni, qconv_transpose_any, qconv_transpose_float_any;
extern const Kernel qpool;
extern const Kernel qadd;
extern const Kernel qupsample;
extern const Kernel qsqueeze_excite;
extern const Kernel quantize;
extern const Kernel dequantize;

}  // namespace modelflow::cpu
