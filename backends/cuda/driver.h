// The GPUs of this machine, asked without starting CUDA: a process that started it cannot use it in children that it
// forks, and one that runs on the CPU need not know.
#pragma once

#include <vector>

namespace modelflow::cuda {

struct Driver {
  int cuda = 0;              ///< the newest CUDA that it runs, 13000 for 13.0
  std::vector<int> devices;  ///< the compute capability of each GPU, 90 for 9.0
};

/// NVIDIA's driver, asked once in a process; without devices where there is none, or where CUDA_VISIBLE_DEVICES hides
/// them all. NVML says it; where that is not installed, CUDA does, which it starts.
const Driver& driver();

}  // namespace modelflow::cuda
