// A stand-in for the CUDA runtime, whose devices are host memory: enough for ONNX Runtime's CUDA provider to make
// sessions, place nodes, copy tensors and run custom kernels that are emulated. Memory, copies, streams and events
// work, in order and at once; NVIDIA's machine code is refused with the kernel's name. Environment:
// MODELFLOW_STAND_IN_DEVICES (how many there are, else 1), MODELFLOW_STAND_IN_MEMORY (bytes of them all),
// MODELFLOW_STAND_IN_LOG (a file: what was allocated when, which kernels were refused).
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr std::size_t kAlignment = 512;

struct Block {
  std::size_t size;
  cudaMemoryType type;
};

struct State {
  std::mutex mutex;
  std::map<char*, Block> blocks;
  std::map<const void*, std::string> kernels;
  std::map<const void*, int> shared;  ///< dynamic bytes that a kernel may have
  std::size_t used = 0;

  std::size_t total = [] {
    const char* given = std::getenv("MODELFLOW_STAND_IN_MEMORY");
    return given ? std::strtoull(given, nullptr, 10) : std::size_t{4} << 30;
  }();
  std::FILE* log = [] {
    const char* path = std::getenv("MODELFLOW_STAND_IN_LOG");
    return path ? std::fopen(path, "a") : nullptr;
  }();
};

State& state() {
  static auto* const kept = new State;  // sessions may end after static objects do
  return *kept;
}

template <class... Arguments>
void say(const char* format, Arguments... arguments) {
  if (!state().log) return;
  std::fprintf(state().log, format, arguments...);
  std::fflush(state().log);
}

thread_local cudaError_t last = cudaSuccess;
thread_local int current = 0;  ///< device

cudaError_t failed(cudaError_t error) { return last = error; }

cudaError_t allocate(void** out, std::size_t size, cudaMemoryType type) {
  const std::lock_guard lock(state().mutex);
  const bool device = type == cudaMemoryTypeDevice;
  if (device && size > state().total - state().used) {
    say("no %zu bytes: %zu of %zu are used\n", size, state().used, state().total);
    return failed(cudaErrorMemoryAllocation);
  }
  const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
  auto* const block = static_cast<char*>(std::aligned_alloc(kAlignment, rounded));
  if (!block) return failed(cudaErrorMemoryAllocation);
  if (device) {
    std::memset(block, 0xcd, rounded);  // what nobody wrote shows
    state().used += size;
    say("allocated %zu bytes, %zu in use\n", size, state().used);
  }
  state().blocks[block] = {size, type};
  *out = block;
  return cudaSuccess;
}

cudaError_t release(void* block) {
  if (!block) return cudaSuccess;
  const std::lock_guard lock(state().mutex);
  const auto found = state().blocks.find(static_cast<char*>(block));
  if (found == state().blocks.end()) return failed(cudaErrorInvalidValue);
  if (found->second.type == cudaMemoryTypeDevice) {
    state().used -= found->second.size;
    say("released %zu bytes, %zu in use\n", found->second.size, state().used);
  }
  state().blocks.erase(found);
  std::free(block);
  return cudaSuccess;
}

cudaError_t refuse(const void* kernel) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().kernels.find(kernel);
  say("refused kernel %s\n", found == state().kernels.end() ? "of no name" : found->second.c_str());
  return failed(cudaErrorNoKernelImageForDevice);
}

using Clock = std::chrono::steady_clock;

struct Configuration {
  dim3 grid, block;
  std::size_t shared;
  void* stream;
};
thread_local Configuration pushed;

}  // namespace

extern "C" {

// What nvcc writes into libraries that hold kernels.
void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { delete handle; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  const std::lock_guard lock(state().mutex);
  state().kernels[host] = name;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, void* stream) {
  pushed = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared = pushed.shared;
  *static_cast<void**>(stream) = pushed.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return refuse(kernel);
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return refuse(kernel);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void* kernel, void**) { return refuse(kernel); }
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return refuse(kernel);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  function(data);
  return cudaSuccess;
}

// Devices: as an H100 answers.
cudaError_t cudaGetDeviceCount(int* count) {
  const char* given = std::getenv("MODELFLOW_STAND_IN_DEVICES");
  return *count = given ? std::atoi(given) : 1, cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) { return *device = current, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return failed(cudaErrorInvalidDevice);
  return current = device, cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return failed(cudaErrorInvalidDevice);
  *to = {};
  std::strcpy(to->name, "host memory in place of a GPU");
  to->major = 9;
  to->multiProcessorCount = 132;
  to->warpSize = 32;
  to->totalGlobalMem = state().total;
  to->maxThreadsPerBlock = to->maxThreadsDim[0] = to->maxThreadsDim[1] = 1024;
  to->maxThreadsDim[2] = 64;
  to->maxThreadsPerMultiProcessor = 2048;
  to->sharedMemPerBlock = 48 << 10;
  to->sharedMemPerBlockOptin = 227 << 10;
  to->sharedMemPerMultiprocessor = 228 << 10;
  to->regsPerBlock = to->regsPerMultiprocessor = 65536;
  to->l2CacheSize = 50 << 20;
  to->maxGridSize[0] = 2147483647;
  to->maxGridSize[1] = to->maxGridSize[2] = 65535;
  to->memoryBusWidth = 5120;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp all;
  if (const cudaError_t error = cudaGetDeviceProperties(&all, device)) return error;
  const std::map<cudaDeviceAttr, std::size_t> known = {
      {cudaDevAttrComputeCapabilityMajor, all.major},
      {cudaDevAttrComputeCapabilityMinor, all.minor},
      {cudaDevAttrMultiProcessorCount, all.multiProcessorCount},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, all.sharedMemPerBlockOptin},
      {cudaDevAttrMaxSharedMemoryPerBlock, all.sharedMemPerBlock},
      {cudaDevAttrMaxThreadsPerBlock, all.maxThreadsPerBlock},
      {cudaDevAttrMaxThreadsPerMultiProcessor, all.maxThreadsPerMultiProcessor},
      {cudaDevAttrWarpSize, all.warpSize},
  };
  const auto found = known.find(attribute);
  *value = found == known.end() ? 0 : static_cast<int>(found->second);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

// Memory.
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(state().mutex);
  *total = state().total;
  *free = state().total - state().used;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** to, std::size_t size) { return allocate(to, size, cudaMemoryTypeDevice); }
cudaError_t cudaMallocFromPoolAsync(void** to, std::size_t size, cudaMemPool_t, cudaStream_t) {
  return allocate(to, size, cudaMemoryTypeDevice);
}
cudaError_t cudaMallocHost(void** to, std::size_t size) { return allocate(to, size, cudaMemoryTypeHost); }
cudaError_t cudaHostAlloc(void** to, std::size_t size, unsigned) { return allocate(to, size, cudaMemoryTypeHost); }
cudaError_t cudaFree(void* block) { return release(block); }
cudaError_t cudaFreeAsync(void* block, cudaStream_t) { return release(block); }
cudaError_t cudaFreeHost(void* block) { return release(block); }
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind) {
  std::memmove(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, size, kind);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_step, const void* from, std::size_t from_step, std::size_t width,
                              std::size_t height, cudaMemcpyKind, cudaStream_t) {
  for (std::size_t i = 0; i < height; ++i)
    std::memcpy(static_cast<char*>(to) + i * to_step, static_cast<const char*>(from) + i * from_step, width);
  return cudaSuccess;
}
cudaError_t cudaMemcpyFromSymbol(void*, const void*, std::size_t, std::size_t, cudaMemcpyKind) {
  return failed(cudaErrorInvalidSymbol);
}
cudaError_t cudaMemset(void* to, int value, std::size_t size) { return std::memset(to, value, size), cudaSuccess; }
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t size, cudaStream_t) { return cudaMemset(to, value, size); }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* to, const void* pointer) {
  *to = {};
  auto* const at = static_cast<char*>(const_cast<void*>(pointer));
  const std::lock_guard lock(state().mutex);
  auto found = state().blocks.upper_bound(at);
  if (found == state().blocks.begin() || (--found, at > found->first + found->second.size)) {
    to->type = cudaMemoryTypeUnregistered;
    return cudaSuccess;
  }
  to->type = found->second.type;
  to->devicePointer = to->hostPointer = at;
  return cudaSuccess;
}

// Streams and events: everything is done when it is asked for.
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return *stream = reinterpret_cast<cudaStream_t>(new int(0)), cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete reinterpret_cast<int*>(stream), cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return *event = reinterpret_cast<cudaEvent_t>(new Clock::time_point), cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return delete reinterpret_cast<Clock::time_point*>(event), cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  return *reinterpret_cast<Clock::time_point*>(event) = Clock::now(), cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const auto at = [](cudaEvent_t event) { return *reinterpret_cast<Clock::time_point*>(event); };
  *milliseconds = std::chrono::duration<float, std::milli>(at(to) - at(from)).count();
  return cudaSuccess;
}

// Kernels are asked about before they are launched.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, const void* kernel) {
  const std::lock_guard lock(state().mutex);
  *to = {};
  to->maxThreadsPerBlock = 1024;
  to->maxDynamicSharedSizeBytes = state().shared[kernel];
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const std::lock_guard lock(state().mutex);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) state().shared[kernel] = value;
  return cudaSuccess;
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute, int, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, std::size_t,
                                                                   unsigned) {
  return *blocks = 1, cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = nullptr;
  if (result) *result = cudaDriverEntryPointSymbolNotFound;
  return cudaErrorNotSupported;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last;
  last = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last; }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "an error of the stand-in";
}
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) return "out of memory";
  return error == cudaErrorNoKernelImageForDevice ? "the stand-in runs no machine code of NVIDIA"
                                                  : "the stand-in has no such function";
}
}  // extern "C"
