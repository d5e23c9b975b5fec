// The kernels of NVIDIA GPUs. Those without `create` plan only: what an optimizer would choose can be asked on any
// machine, and nothing is emitted for them.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::cuda {

extern const Kernel layer_norm;

inline constexpr std::array kKernels = {&layer_norm};

}  // namespace modelflow::cuda
