// What kernels over rows share: sums and maxima over a warp or a block, reading and writing several elements at once.
#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/launches.h"

namespace modelflow::cuda {

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
/// NaN wins, as in the standard's ReduceMax.
struct Max {
  __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

/// NaN wins here too.
struct Min {
  __device__ float operator()(float a, float b) const { return a < b || a != a ? a : b; }
};

/// Over the 32 lanes of a warp, all of which get it.
template <class F>
__device__ inline float warp_reduce(float value, F f) {
  for (int apart = 16; apart > 0; apart /= 2) value = f(value, __shfl_xor_sync(~0U, value, apart));
  return value;
}

/// Over blockDim.x threads, a multiple of 32, all of which get it. `partial` is shared memory of 32 floats.
template <class F>
__device__ inline float block_reduce(float value, F f, float* partial) {
  value = warp_reduce(value, f);
  if (blockDim.x == 32) return value;
  const unsigned warps = blockDim.x / 32;
  __syncthreads();  // what the reduction before left may still be read
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = partial[0];
  for (unsigned warp = 1; warp < warps; ++warp) value = f(value, partial[warp]);
  return value;
}

/// The element of operand `i` that belongs to `element` of the result.
__device__ inline std::int64_t place(const Places& places, int i, std::int64_t element) {
  if (places.whole[i]) return element;
  if (places.single[i]) return 0;
  std::int64_t at = 0;
  for (int axis = places.axes - 1; axis >= 0; --axis) {
    const std::int64_t extent = places.extents[axis];
    at += element % extent * places.strides[i][axis];
    element /= extent;
  }
  return at;
}

/// N elements side by side, moved at once: 16 bytes where that many are.
template <class T, int N>
struct __align__(sizeof(T) * N) Pack {
  T of[N];
};

template <class T, int N>
__device__ inline void read(const T* from, float (&to)[N]) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from);
  for (int i = 0; i < N; ++i) to[i] = static_cast<float>(pack.of[i]);
}

/// As it is stored; of 8 bits the nearest, ties to even, NaN as the least.
template <class T>
__device__ inline T stored(float x) {
  if constexpr (sizeof(T) == 1) {
    const float nearest = rintf(x);
    return static_cast<T>(nearest > 0 ? nearest < 255 ? nearest : 255.0F : 0.0F);
  } else {
    return static_cast<T>(x);
  }
}

template <class T, int N>
__device__ inline void write(const float (&from)[N], T* to) {
  Pack<T, N> pack;
  for (int i = 0; i < N; ++i) pack.of[i] = stored<T>(from[i]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// What a number is once it is stored.
template <class T>
__device__ inline float rounded(float x) {
  return static_cast<float>(static_cast<T>(x));
}

/// True when `at` (null too) may be read `bytes` at a time.
inline bool aligned(const void* at, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(at) % bytes == 0; }

/// The number that a step stands for, and the step of a number (QuantizeLinear).
__device__ inline float number_of(const Steps& steps, float step) {
  return (step - static_cast<float>(steps.zero_point)) * steps.scale;
}
__device__ inline float step_of(const Steps& steps, float number) {
  return rintf(number / steps.scale) + static_cast<float>(steps.zero_point);
}

/// The sum of both, which wrap around and come back.
__device__ inline std::int32_t shifted(std::int32_t sum, std::int32_t shift) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(shift));
}

/// f(T()) with the type of float that `number` stands for.
template <class F>
const char* with_type(Number number, F f) {
  switch (number) {
    case Number::f32:
      return f(float());
    case Number::f16:
      return f(Half());
    case Number::bf16:
      return f(BFloat16());
    case Number::u8:
      break;
  }
  return "an unknown type of numbers";
}

/// The same where steps of 8 bits are numbers too.
template <class F>
const char* with_type_or_bytes(Number number, F f) {
  return number == Number::u8 ? f(std::uint8_t()) : with_type(number, f);
}

}  // namespace modelflow::cuda
