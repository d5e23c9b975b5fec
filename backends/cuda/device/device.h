// What kernel sources include: CUDA under nvcc, the same language on the host under any other compiler. One source, two
// machines: `launch(kernel<T>, {grid, block, shared, stream}, arguments...)` runs either.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#include "backends/cuda/device/nvidia.h"
#else
#include "backends/cuda/emulator/language.h"
#endif
