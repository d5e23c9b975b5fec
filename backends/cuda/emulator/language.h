// The language of kernel sources on the host: CUDA's keywords, its thread indices, barriers and warp operations.
#pragma once

#include <atomic>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "backends/cuda/emulator/block.h"
#include "backends/cuda/emulator/numbers.h"
#include "backends/cuda/emulator/warp.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) alignas(bytes)
/// `name` is the dynamic shared memory of the block, as elements of `type`.
#define MF_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::modelflow::cuda::emulated::dynamic_shared())

#define threadIdx (::modelflow::cuda::emulated::here().thread)
#define blockIdx (::modelflow::cuda::emulated::here().block)
#define blockDim (::modelflow::cuda::emulated::here().block_size)
#define gridDim (::modelflow::cuda::emulated::here().grid_size)

struct float4 {
  float x, y, z, w;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};

namespace modelflow::cuda {

using emulated::dim3;

struct Launch {
  dim3 grid, block;
  unsigned shared = 0;  ///< bytes of dynamic shared memory
  void* stream = nullptr;
};

inline void* stream_of(void* stream) { return stream; }

/// Few, so that the loops of their threads go round.
inline constexpr unsigned kMostBlocks = 8;

/// Few, so that large grids go on along y.
inline constexpr std::int64_t kMostBlocksAlong = 256;

/// Null, or what went wrong, in a text of the calling thread.
template <class... P, class... A>
const char* launch(void (*kernel)(P...), const Launch& how, const A&... arguments) {
  const std::tuple<P...> copied(static_cast<P>(arguments)...);
  return emulated::run(how.grid, how.block, how.shared, [&] { std::apply(kernel, copied); });
}

}  // namespace modelflow::cuda

inline void __syncthreads() { modelflow::cuda::emulated::barrier(); }
inline void __syncwarp(unsigned mask = ~0U) { modelflow::cuda::emulated::ballot(mask, false, "__syncwarp"); }
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int lane = modelflow::cuda::emulated::lane();
  return modelflow::cuda::emulated::shuffle(mask, value, (lane & ~(width - 1)) + (source & (width - 1)), "__shfl_sync");
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const int lane = modelflow::cuda::emulated::lane(), source = lane ^ bits;
  const bool inside = source / width <= lane / width;
  return modelflow::cuda::emulated::shuffle(mask, value, inside ? source : -1, "__shfl_xor_sync");
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int distance, int width = 32) {
  const int lane = modelflow::cuda::emulated::lane(), source = lane + distance;
  const bool inside = source / width == lane / width;
  return modelflow::cuda::emulated::shuffle(mask, value, inside ? source : -1, "__shfl_down_sync");
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return modelflow::cuda::emulated::ballot(mask, predicate != 0, "__ballot_sync");
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
template <class T>
T __ldg(const T* at) {
  return *at;
}
/// Blocks that run at once may add to one number, those of other host threads too.
inline float atomicAdd(float* to, float x) { return std::atomic_ref(*to).fetch_add(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
