// Opens the library of a device's kernels, once in a process.
#include "backends/cuda/library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace modelflow::cuda {
namespace {

struct Opened {
  const DeviceLibrary* library = nullptr;
  std::string why;
};

constexpr const char* kFile = "libmodelflow_ort_cuda.so";

/// Beside the library (or program) that holds this function.
std::string beside() {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&beside), &here) == 0 || !here.dli_fname) return kFile;
  const std::string path = here.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? kFile : path.substr(0, slash + 1) + kFile;
}

Opened open() {
  const char* given = std::getenv("MODELFLOW_CUDA_LIBRARY");
  const std::string path = given && *given ? given : beside();
  void* file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!file) return {nullptr, dlerror()};
  const auto table = reinterpret_cast<decltype(&modelflow_device_library)>(dlsym(file, "modelflow_device_library"));
  if (!table) return {nullptr, path + " is no library of ModelFlow's"};
  const DeviceLibrary* library = table();
  if (library->version != MODELFLOW_CUDA_INTERFACE) return {nullptr, path + " is of another version"};
  return {library, {}};
}

}  // namespace

const DeviceLibrary* device_library(std::string* why) {
  static const Opened* const opened = new Opened(open());  // sessions use it until the process ends
  if (why) *why = opened->why;
  return opened->library;
}

}  // namespace modelflow::cuda
