// The device at hand as a target.
#pragma once

#include "backends/cuda/library.h"
#include "modelflow/target.h"

namespace modelflow::cuda {

/// Device 0 of the library: the preset of its generation with the numbers that the driver tells. Throws
/// Error(unsupported) for devices older than sm_75.
Target target_of(const DeviceLibrary& library);

}  // namespace modelflow::cuda
