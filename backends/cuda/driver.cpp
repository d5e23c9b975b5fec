// Asks the libraries of NVIDIA's driver, which are opened by name: there may be none.
#include "backends/cuda/driver.h"

#include <dlfcn.h>

#include <cctype>
#include <cstdlib>
#include <optional>

namespace modelflow::cuda {
namespace {

/// Functions that all give 0 when they work.
class Library {
 public:
  explicit Library(const char* name) : file_(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}  // stays open
  template <class... P>
  bool works(const char* name, P... arguments) const {
    const auto function = reinterpret_cast<int (*)(P...)>(file_ ? dlsym(file_, name) : nullptr);
    return function && function(arguments...) == 0;
  }

 private:
  void* file_;
};

std::optional<Driver> said_by_nvml() {
  const Library nvml("libnvidia-ml.so.1");
  if (!nvml.works("nvmlInit_v2")) return std::nullopt;
  Driver driver;
  unsigned count = 0;
  bool known =
      nvml.works("nvmlSystemGetCudaDriverVersion_v2", &driver.cuda) && nvml.works("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; known && i < count; ++i) {
    void* device = nullptr;
    int major = 0, minor = 0;
    known = nvml.works("nvmlDeviceGetHandleByIndex_v2", i, &device) &&
            nvml.works("nvmlDeviceGetCudaComputeCapability", device, &major, &minor);
    driver.devices.push_back(10 * major + minor);
  }
  nvml.works("nvmlShutdown");
  return known ? std::optional(driver) : std::nullopt;
}

Driver said_by_cuda() {
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  const Library cuda("libcuda.so.1");
  Driver driver;
  int count = 0;
  if (!cuda.works("cuDriverGetVersion", &driver.cuda) || !cuda.works("cuInit", 0U) ||
      !cuda.works("cuDeviceGetCount", &count))
    return {};
  for (int i = 0; i < count; ++i) {
    int major = 0, minor = 0;
    if (cuda.works("cuDeviceGetAttribute", &major, kMajor, i) && cuda.works("cuDeviceGetAttribute", &minor, kMinor, i))
      driver.devices.push_back(10 * major + minor);
  }
  return driver;
}

/// Empty, or -1: an index that is none ends the list.
bool all_are_hidden() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible && !std::isalnum(static_cast<unsigned char>(*visible));
}

Driver ask() {
  if (all_are_hidden()) return {};
  if (std::optional<Driver> driver = said_by_nvml()) return *driver;
  return said_by_cuda();
}

}  // namespace

const Driver& driver() {
  static const auto* const asked = new Driver(ask());  // sessions may end after static objects do
  return *asked;
}

}  // namespace modelflow::cuda
