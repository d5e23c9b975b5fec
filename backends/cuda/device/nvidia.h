// CUDA as nvcc has it, under the names that kernel sources share with the emulator.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "backends/cuda/device/cuda_calls.h"

namespace modelflow::cuda {

using Half = __half;
using BFloat16 = __nv_bfloat16;

struct Launch {
  dim3 grid, block;
  unsigned shared = 0;  ///< bytes of dynamic shared memory
  cudaStream_t stream = nullptr;
};

/// Threads that share out more work than this many blocks have go round in a loop.
inline constexpr unsigned kMostBlocks = 1U << 16;

/// What a grid takes along x.
inline constexpr std::int64_t kMostBlocksAlong = 0x7fffffff;

inline cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

/// Null, or why the kernel was not started.
template <class... P, class... A>
const char* launch(void (*kernel)(P...), const Launch& how, const A&... arguments) {
  if (has_to_ask(how.shared))
    if (const char* why = ask_for_shared(reinterpret_cast<const void*>(kernel))) return why;
  kernel<<<how.grid, how.block, how.shared, how.stream>>>(static_cast<P>(arguments)...);
  return text_of(cudaGetLastError());
}

}  // namespace modelflow::cuda

/// `name` is the dynamic shared memory of the block, as elements of `type`.
#define MF_DYNAMIC_SHARED(type, name)                         \
  extern __shared__ __align__(16) unsigned char mf_dynamic[]; \
  type* const name = reinterpret_cast<type*>(mf_dynamic)
