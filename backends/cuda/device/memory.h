// Numbers and memory of a device: CUDA's, or the host's in their place.
#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/library.h"

#if defined(__CUDACC__)
#include <cstring>
#else
#include <cstdlib>
#endif

namespace modelflow::cuda {

#if defined(__CUDACC__)

inline constexpr const char* kBuilt = "CUDA";
inline constexpr int kCuda = CUDART_VERSION;
inline constexpr const char* kArchitectures = MODELFLOW_CUDA_CODE;

inline const char* describe_device(int device, DeviceNumbers* numbers) {
  cudaDeviceProp properties;
  if (const char* why = text_of(cudaGetDeviceProperties(&properties, device))) return why;
  *numbers = {};
  std::strncpy(numbers->name, properties.name, sizeof numbers->name - 1);
  numbers->sm = 10 * properties.major + properties.minor;
  numbers->multiprocessors = properties.multiProcessorCount;
  numbers->shared_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  numbers->l2 = properties.l2CacheSize;
  numbers->memory = static_cast<std::int64_t>(properties.totalGlobalMem);
  int kilohertz = 0;
  if (!text_of(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device))) numbers->clock = 1e3 * kilohertz;
  if (!text_of(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, device)))
    numbers->bandwidth = 2e3 * kilohertz * properties.memoryBusWidth / 8;  // two transfers per cycle
  return nullptr;
}

inline const char* allocate(void** memory, std::size_t bytes) { return text_of(cudaMalloc(memory, bytes)); }
inline void release(void* memory) { text_of(cudaFree(memory)); }
inline const char* copy(void* to, const void* from, std::size_t bytes, void* stream) {
  return text_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)));
}
inline const char* synchronize(void* stream) {
  return text_of(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}
inline bool capturing(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return !text_of(cudaStreamIsCapturing(stream_of(stream), &status)) && status != cudaStreamCaptureStatusNone;
}

#else

inline constexpr const char* kBuilt = "emulated";
inline constexpr int kCuda = 0;
inline constexpr const char* kArchitectures = "75-real+80-real+90";

/// As an H100 would answer.
inline const char* describe_device(int device, DeviceNumbers* numbers) {
  if (device != 0) return "invalid device ordinal";
  *numbers = {"emulated", 90, 132, 227 << 10, 50 << 20, std::int64_t{4} << 30, 1.98e9, 3.35e12};
  return nullptr;
}

inline const char* allocate(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes + 1);  // AddressSanitizer sees what is read behind it
  if (!*memory) return "out of memory";
  std::memset(*memory, 0xcd, bytes);  // what nobody wrote shows
  return nullptr;
}
inline void release(void* memory) { std::free(memory); }
inline const char* copy(void* to, const void* from, std::size_t bytes, void*) {
  std::memcpy(to, from, bytes);
  return nullptr;
}
inline const char* synchronize(void*) { return nullptr; }
inline bool capturing(void*) { return false; }

#endif

}  // namespace modelflow::cuda
