// The devices at hand as targets.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "backends/cuda/driver.h"
#include "backends/cuda/library.h"
#include "modelflow/target.h"

namespace modelflow::cuda {

/// The compute capability that the code was compiled for which a device of `sm` runs, of a library for `architectures`
/// ("75-real+80-real+90", as CMake has them): machine code for its generation, or what the driver compiles from PTX.
/// 0: there is none.
int code_for(std::string_view architectures, int sm);

/// Whether the driver is new enough for the library and has a device that runs its kernels.
bool serves(const DeviceLibrary& library, const Driver& driver);

/// A device of the library: the preset of its generation with the numbers that the driver tells, and the compute
/// capability of the code that it runs. Throws Error(unsupported) where it runs none.
Target target_of(const DeviceLibrary& library, int device);

/// The devices of a library, each asked for when the first session is there. May be called from any thread.
class DeviceTargets {
 public:
  struct Found {
    std::optional<Target> target;
    std::string why;  ///< there is none
  };
  explicit DeviceTargets(const DeviceLibrary& library) : library_(library) {}
  const Found& of(int device);

 private:
  const DeviceLibrary& library_;
  std::mutex mutex_;
  std::map<int, Found> found_;
};

}  // namespace modelflow::cuda
