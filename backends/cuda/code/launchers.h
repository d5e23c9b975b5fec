// The functions that start kernels, one for each entry of DeviceLibrary. Each gives null, or why it did not start.
#pragma once

#include "backends/cuda/launches.h"
#include "backends/cuda/launches/attention.h"
#include "backends/cuda/launches/products.h"

namespace modelflow::cuda {

const char* start_layer_norm(const LayerNormLaunch& launch, void* stream);
const char* start_matmul(const MatMulLaunch& launch, void* stream);
const char* start_conv(const ConvLaunch& launch, void* stream);
const char* start_attention(const AttentionLaunch& launch, void* stream);

}  // namespace modelflow::cuda
