// The kernels of NVIDIA GPUs, best first within each op. What an optimizer would choose can be asked on any machine; to
// run them takes the library of device code (library.h).
#pragma once

#include <array>
#include <memory>

#include "backends/cuda/library.h"
#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// A kernel's `create` for an implementation that is made of the call and the library.
template <class T>
std::unique_ptr<Implementation> create(const Call& call, const Target&) {
  std::string why;
  const DeviceLibrary* library = device_library(&why);
  if (!library) throw Error(ErrorKind::unsupported, "no CUDA device to run on: " + why);
  return std::make_unique<T>(call, *library);
}

extern const Kernel layer_norm;

inline constexpr std::array kKernels = {&layer_norm};

}  // namespace modelflow::cuda
