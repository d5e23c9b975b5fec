// Calls of the CUDA runtime by the host: how they fail, and the shared memory that kernels may have.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/launches/shared_memory.h"

namespace modelflow::cuda {

/// Null, or what went wrong. It is told once: left with the thread, it would be taken for what the next launch did.
inline const char* text_of(cudaError_t error) {
  if (error == cudaSuccess) return nullptr;
  cudaGetLastError();
  return cudaGetErrorString(error);
}

/// Lets a kernel have all that a block of this device may share, more than every device grants unasked. All, whatever a
/// launch needs: of two threads that start the kernel, one would take from the other what it asked for.
inline const char* ask_for_shared(const void* kernel) {
  int device = 0, all = 0;
  if (const char* why = text_of(cudaGetDevice(&device))) return why;
  if (const char* why = text_of(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)))
    return why;
  const int dynamic = all - static_cast<int>(kStaticShared);
  return text_of(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic));
}

}  // namespace modelflow::cuda
