// A fused op as ONNX Runtime knows it: one structure for each registered name.
#pragma once

#include <optional>

#include "backends/cuda/device_target.h"
#include "backends/ort/api.h"
#include "backends/ort/scratch_pool.h"
#include "modelflow/kernel.h"

namespace modelflow::ort {

/// What all ops of one registration share. Lives until the process ends, like the ops themselves: sessions, and the
/// runtime's unloading of this library, may come in any order.
struct Registration {
  const OrtApi* api = nullptr;
  int api_version = 0;
  Target target;  ///< which names have kernels; of a GPU: the newest
  std::size_t threads = 1;
  const Kernel* only = nullptr;                        ///< what alone may run its op; null: the best
  const Target* host = nullptr;                        ///< the machine, where the target is a GPU in it
  const cuda::DeviceLibrary* library = nullptr;        ///< of the target, where that is a GPU
  mutable std::optional<cuda::DeviceTargets> devices;  ///< of the library: each session has one of them
  mutable ScratchPool scratch;
};

/// One registered name ("Conv_3"): the structure that the runtime calls through.
struct CustomOp : OrtCustomOp {
  /// For `there` among those that share the name, with `type` where an op says float32: a device has an overload of
  /// each name for every type that its kernels compute with, and so has the CPU, which computes in float32.
  /// `run` false: it says that a node of these types may be in a model, and what its result is the model says.
  CustomOp(std::vector<const FusedOp*> ops, std::string name, const Registration& registration,
           std::vector<const FusedOp*> there, DType type, bool run = true);

  std::vector<const FusedOp*> pool;   ///< those that share the name; a node's attributes say which it calls
  std::vector<const FusedOp*> taken;  ///< those of them whose types this overload takes
  std::string pool_name;
  DType floats;
  bool runs;
  const Registration* registration;
};

}  // namespace modelflow::ort
