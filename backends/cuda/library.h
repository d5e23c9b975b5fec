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
#include "backends/cuda/launches/transposed.h"
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
  std::uint32_t version;      ///< MODELFLOW_CUDA_INTERFACE where it was built: what CMake makes of this header and the
                              ///< structures that it passes, as both sides have to be built of the same
  const char* built;          ///< "CUDA" or "emulated"
  std::int32_t cuda;          ///< the CUDA that it was built with, 13000 for 13.0; 0: emulated
  const char* architectures;  ///< that it has code for, "75-real+80-real+90"

  const char* (*describe)(int device, DeviceNumbers* numbers);
  const char* (*allocate)(void** memory, std::size_t bytes);
  void (*release)(void* memory);
  const char* (*copy)(void* to, const void* from, std::size_t bytes, void* stream);  ///< in any direction
  const char* (*synchronize)(void* stream);
  bool (*capturing)(void* stream);  ///< what is put into it is recorded for a CUDA graph and does not run

  const char* (*activation)(const ActivationLaunch& launch, void* stream);
  const char* (*channel_attention)(const ChannelAttentionLaunch& launch, void* stream);
  const char* (*channel_mean)(const ChannelMeanLaunch& launch, void* stream);
  const char* (*column_embedding)(const ColumnEmbeddingLaunch& launch, void* stream);
  const char* (*copy_pixels)(const CopyLaunch& launch, void* stream);
  const char* (*embedding)(const EmbeddingLaunch& launch, void* stream);
  const char* (*group_norm)(const GroupNormLaunch& launch, void* stream);
  const char* (*interpolate)(const InterpolateLaunch& launch, void* stream);
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
  const char* (*scatter_add)(const ScatterAddLaunch& launch, void* stream);
  const char* (*selective_scan)(const SelectiveScanLaunch& launch, void* stream);
  const char* (*softmax)(const SoftmaxLaunch& launch, void* stream);
  const char* (*squeeze_excite)(const ExciteLaunch& launch, void* stream);
  const char* (*talking_heads)(const TalkingHeadsLaunch& launch, void* stream);
  const char* (*transpose)(const TransposeLaunch& launch, void* stream);
  const char* (*quantize)(const QuantizeLaunch& launch, void* stream);
  const char* (*dequantize)(const QuantizeLaunch& launch, void* stream);
  const char* (*qadd)(const QAddLaunch& launch, void* stream);
  const char* (*qconv)(const QConvLaunch& launch, void* stream);
  const char* (*row_steps)(const RowStepsLaunch& launch, void* stream);
  const char* (*qmatmul)(const QMatMulLaunch& launch, void* stream);
};

/// The library of this process: MODELFLOW_CUDA_LIBRARY (a path), or what stands beside the library that holds this
/// code. Opened once, which starts no CUDA. Null, with the reason in `why`, when there is none of this version.
const DeviceLibrary* device_library(std::string* why = nullptr);

/// Throws Error(unsupported) naming `op` for a reason that is not null.
inline void check(const char* op, const char* why) {
  if (why) throw Error(ErrorKind::unsupported, std::string(op) + ": " + why);
}

}  // namespace modelflow::cuda

/// What a library of kernels exports: `const DeviceLibrary*`.
extern "C" const modelflow::cuda::DeviceLibrary* modelflow_device_library();
