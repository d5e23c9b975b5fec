// A fused op as ONNX Runtime knows it: one structure for each registered name.
#pragma once

#include "backends/ort/api.h"
#include "backends/ort/scratch_pool.h"
#include "modelflow/kernel.h"

namespace modelflow::ort {

/// What all ops of one registration share. Lives until the process ends, like the ops themselves: sessions, and the
/// runtime's unloading of this library, may come in any order.
struct Registration {
  const OrtApi* api = nullptr;
  int api_version = 0;
  Target target;
  std::size_t threads = 1;
  const Kernel* only = nullptr;  ///< what alone may run its op; null: the best
  mutable ScratchPool scratch;
};

/// One registered name ("Conv_3"): the structure that the runtime calls through.
struct CustomOp : OrtCustomOp {
  /// `ops`: those that share the name; a node's attributes say which it calls.
  CustomOp(std::vector<const FusedOp*> ops, std::string name, const Registration& registration);

  std::vector<const FusedOp*> fused;
  std::string pool_name;
  const Registration* registration;
};

}  // namespace modelflow::ort
