// The table that this library of kernels exports, and the memory of its device.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/memory.h"
#include "backends/cuda/library.h"

namespace modelflow::cuda {
namespace {

constexpr DeviceLibrary kLibrary = {
    .version = MODELFLOW_CUDA_INTERFACE,
    .built = kBuilt,
    .cuda = kCuda,
    .architectures = kArchitectures,
    .describe = describe_device,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .synchronize = synchronize,
    .capturing = capturing,
    .activation = start_activation,
    .channel_attention = start_channel_attention,
    .channel_mean = start_channel_mean,
    .column_embedding = start_column_embedding,
    .copy_pixels = start_copy_pixels,
    .embedding = start_embedding,
    .group_norm = start_group_norm,
    .interpolate = start_interpolate,
    .layer_norm = start_layer_norm,
    .matmul = start_matmul,
    .matmul_nbits = start_matmul_nbits,
    .conv = start_conv,
    .conv_transpose = start_conv_transpose,
    .attention = start_attention,
    .pointwise = start_pointwise,
    .pointwise_scan = start_pointwise_scan,
    .pool = start_pool,
    .recurrent = start_recurrent,
    .reduce = start_reduce,
    .rotary = start_rotary,
    .scatter_add = start_scatter_add,
    .selective_scan = start_selective_scan,
    .softmax = start_softmax,
    .squeeze_excite = start_squeeze_excite,
    .talking_heads = start_talking_heads,
    .transpose = start_transpose,
    .quantize = start_quantize,
    .dequantize = start_dequantize,
    .qadd = start_qadd,
    .qconv = start_qconv,
    .row_steps = start_row_steps,
    .qmatmul = start_qmatmul,
};

}  // namespace
}  // namespace modelflow::cuda

extern "C" __attribute__((visibility("default"))) const modelflow::cuda::DeviceLibrary* modelflow_device_library() {
  return &modelflow::cuda::kLibrary;
}
