// The door to a device: a table of C functions, which libmodelflow_ort_cuda.so fills where nvcc built it and its
// emulated twin where the host compiler did. Host code calls nothing of CUDA itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/cuda/launches.h"
#include "backends/cuda/launches/attention.h"
#include "backends/cuda/launches/bytes.h"
#include "backends/cuda/launches/elements.h"
#include "backends/cuda/launches/pixels.h"
#include "backends/cuda/launches/products.h"
#include "backends/cuda/launches/recurrent.h"
#include "backends/cuda/launches/rows.h"
#include "modelflow/error.h"

namespace modelflow::cuda {

struct DeviceNumbers {
  char name[64];
  int sm, multiprocessors;
  std::int64_t shared_per_block, l2, memory;
  double clock, bandwidth;  ///< cycles and bytes of device memory per second; 0 when unknown
};

/// Functions give null, or what went wrong. All work goes into `stream` (a cudaStream_t, null for the default one).
struct DeviceLibrary {
  static constexpr std::uint32_t kVersion = 4;
  std::uint32_t version;
  std::uint32_t size;  ///< of this structure, which grows with each kernel: both sides are built together
  const char* built;   ///< "CUDA 13.0" or "emulated"

  const char* (*describe)(int device, DeviceNumbers* numbers);
  const char* (*allocate)(void** memory, std::size_t bytes);
  void (*release)(void* memory);
  const char* (*copy)(void* to, const void* from, std::size_t bytes, void* stream);  ///< in any direction
  const char* (*synchronize)(void* stream);

  const char* (*activation)(const ActivationLaunch& launch, void* stream);
  const char* (*channel_mean)(const ChannelMeanLaunch& launch, void* stream);
  const char* (*copy_pixels)(const CopyLaunch& launch, void* stream);
  const char* (*embedding)(const EmbeddingLaunch& launch, void* stream);
  const char* (*group_norm)(const GroupNormLaunch& launch, void* stream);
  const char* (*layer_norm)(const LayerNormLaunch& launch, void* stream);
  const char* (*matmul)(const MatMulLaunch& launch, void* stream);
  const char* (*matmul_nbits)(const MatMulNBitsLaunch& launch, void* stream);
  const char* (*conv)(const ConvLaunch& launch, void* stream);
  const char* (*conv_transpose)(const ConvTransposeLaunch& launch, void* stream);
  const char* (*attention)(const AttentionLaunch& launch, void* stream);
  const char* (*pointwise)(const PointwiseLaunch& launch, void* stream);
  const char* (*pointwise_scan)(const PointwiseScanLaunch& launch, void* stream);
  const char* (*pool)(const PoolLaunch& launch, void* stream);
  const char* (*recurrent)(const RecurrentLaunch& launch, void* stream);
  const char* (*reduce)(const ReduceLaunch& launch, void* stream);
  const char* (*rotary)(const RotaryLaunch& launch, void* stream);
  const char* (*selective_scan)(const SelectiveScanLaunch& launch, void* stream);
  const char* (*softmax)(const SoftmaxLaunch& launch, void* stream);
  const char* (*squeeze_excite)(const ExciteLaunch& launch, void* stream);
  const char* (*quantize)(const QuantizeLaunch& launch, void* stream);
  const char* (*dequantize)(const QuantizeLaunch& launch, void* stream);
  const char* (*qadd)(const QAddLaunch& launch, void* stream);
  const char* (*qconv)(const QConvLaunch& launch, void* stream);
  const char* (*row_steps)(const RowStepsLaunch& launch, void* stream);
  const char* (*qmatmul)(const QMatMulLaunch& launch, void* stream);
};

/// The library of this process: MODELFLOW_CUDA_LIBRARY (a path), or what stands beside the library that holds this
/// code. Opened once. Null, with the reason in `why`, when there is none or it finds no device.
const DeviceLibrary* device_library(std::string* why = nullptr);

/// Whether NVIDIA's driver is there and finds a device.
bool driver_finds_device();

/// Throws Error(unsupported) naming `op` for a reason that is not null.
inline void check(const char* op, const char* why) {
  if (why) throw Error(ErrorKind::unsupported, std::string(op) + ": " + why);
}

}  // namespace modelflow::cuda

/// What a library of kernels exports: `const DeviceLibrary*`.
extern "C" const modelflow::cuda::DeviceLibrary* modelflow_device_library();
