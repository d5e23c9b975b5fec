// The table that this library of kernels exports, and the memory of its device.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/memory.h"
#include "backends/cuda/library.h"

namespace modelflow::cuda {
namespace {

constexpr DeviceLibrary kLibrary = {
    .version = DeviceLibrary::kVersion,
    .size = sizeof(DeviceLibrary),
    .built = kBuilt,
    .describe = describe_device,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .synchronize = synchronize,
    .layer_norm = start_layer_norm,
    .matmul = start_matmul,
    .conv = start_conv,
    .attention = start_attention,
};

}  // namespace
}  // namespace modelflow::cuda

extern "C" __attribute__((visibility("default"))) const modelflow::cuda::DeviceLibrary* modelflow_device_library() {
  return &modelflow::cuda::kLibrary;
}
