// A node as ONNX Runtime describes it, as a Call.
#pragma once

#include "backends/ort/api.h"
#include "modelflow/kernel.h"

namespace modelflow::ort {

/// What the runtime tells about a node, as a Call: attributes, types and constant inputs. `constants` keeps the tensors
/// that the call points to; their bytes belong to the session. Outputs are inferred; throws Error when they contradict.
Call describe(const OrtApi& api, const OrtKernelInfo* info, const std::string& pool_name,
              std::vector<Tensor>& constants);

/// "node 'Conv_12' (modelflow.Conv_1)" for messages.
std::string label(const OrtApi& api, const OrtKernelInfo* info, const std::string& pool_name);

}  // namespace modelflow::ort
