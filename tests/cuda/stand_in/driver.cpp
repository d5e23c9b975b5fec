// What the libraries of NVIDIA's driver say of the stand-in's devices: libcuda.so.1, and NVML, which asks without
// starting CUDA. That CUDA was started goes into the log (MODELFLOW_STAND_IN_LOG).
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kCuda = 13000, kMajor = 9, kMinor = 0;

int devices() {
  const char* given = std::getenv("MODELFLOW_STAND_IN_DEVICES");
  return given ? std::atoi(given) : 1;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  const char* path = std::getenv("MODELFLOW_STAND_IN_LOG");
  if (std::FILE* log = path ? std::fopen(path, "a") : nullptr) {
    std::fputs("CUDA was started\n", log);
    std::fclose(log);
  }
  return 0;
}
int cuDriverGetVersion(int* version) { return *version = kCuda, 0; }
int cuDeviceGetCount(int* count) { return *count = devices(), 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kOfMajor = 75;
  return *value = attribute == kOfMajor ? kMajor : kMinor, 0;
}

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int* version) { return *version = kCuda, 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = static_cast<unsigned>(devices()), 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** device) { return *device = nullptr, 0; }
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) { return *major = kMajor, *minor = kMinor, 0; }

}  // extern "C"
