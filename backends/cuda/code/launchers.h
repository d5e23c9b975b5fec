// The functions that start kernels, one for each entry of DeviceLibrary. Each gives null, or why it did not start.
#pragma once

#include "backends/cuda/launches.h"
#include "backends/cuda/launches/attention.h"
#include "backends/cuda/launches/bytes.h"
#include "backends/cuda/launches/elements.h"
#include "backends/cuda/launches/pixels.h"
#include "backends/cuda/launches/products.h"
#include "backends/cuda/launches/recurrent.h"
#include "backends/cuda/launches/rows.h"
#include "backends/cuda/launches/transposed.h"

namespace modelflow::cuda {

const char* start_activation(const ActivationLaunch& launch, void* stream);
const char* start_channel_attention(const ChannelAttentionLaunch& launch, void* stream);
const char* start_channel_mean(const ChannelMeanLaunch& launch, void* stream);
const char* start_column_embedding(const ColumnEmbeddingLaunch& launch, void* stream);
const char* start_copy_pixels(const CopyLaunch& launch, void* stream);
const char* start_embedding(const EmbeddingLaunch& launch, void* stream);
const char* start_group_norm(const GroupNormLaunch& launch, void* stream);
const char* start_interpolate(const InterpolateLaunch& launch, void* stream);
const char* start_layer_norm(const LayerNormLaunch& launch, void* stream);
const char* start_matmul(const MatMulLaunch& launch, void* stream);
const char* start_matmul_nbits(const MatMulNBitsLaunch& launch, void* stream);
const char* start_conv(const ConvLaunch& launch, void* stream);
const char* start_conv_transpose(const ConvTransposeLaunch& launch, void* stream);
const char* start_attention(const AttentionLaunch& launch, void* stream);
const char* start_pointwise(const PointwiseLaunch& launch, void* stream);
const char* start_pointwise_scan(const PointwiseScanLaunch& launch, void* stream);
const char* start_pool(const PoolLaunch& launch, void* stream);
const char* start_recurrent(const RecurrentLaunch& launch, void* stream);
const char* start_reduce(const ReduceLaunch& launch, void* stream);
const char* start_rotary(const RotaryLaunch& launch, void* stream);
const char* start_scatter_add(const ScatterAddLaunch& launch, void* stream);
const char* start_selective_scan(const SelectiveScanLaunch& launch, void* stream);
const char* start_softmax(const SoftmaxLaunch& launch, void* stream);
const char* start_squeeze_excite(const ExciteLaunch& launch, void* stream);
const char* start_talking_heads(const TalkingHeadsLaunch& launch, void* stream);
const char* start_transpose(const TransposeLaunch& launch, void* stream);
const char* start_quantize(const QuantizeLaunch& launch, void* stream);
const char* start_dequantize(const QuantizeLaunch& launch, void* stream);
const char* start_qadd(const QAddLaunch& launch, void* stream);
const char* start_qconv(const QConvLaunch& launch, void* stream);
const char* start_row_steps(const RowStepsLaunch& launch, void* stream);
const char* start_qmatmul(const QMatMulLaunch& launch, void* stream);

}  // namespace modelflow::cuda
