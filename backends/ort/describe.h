// A node as ONNX Runtime describes it, as a Call.
#pragma once

#include "backends/ort/api.h"
#include "modelflow/kernel.h"

namespace modelflow::ort {

/// What the runtime tells about a node, as a Call: attributes, types and constant inputs. `constants` keeps the tensors
/// that the call points to; their bytes belong to the session. Outputs have the names that the node gives them alone;
/// throws Error(invalid_input) where an attribute is of another type than its op's.
Call describe(const OrtApi& api, const OrtKernelInfo* info, const std::string& pool_name,
              std::vector<Tensor>& constants);

/// Infers the outputs; throws Error(invalid_input) when attributes and inputs contradict each other, or give other
/// outputs than the node asks for.
void infer_outputs(Call& call);

/// "node 'Conv_12' (modelflow.Conv_1)" for messages.
std::string label(const OrtApi& api, const OrtKernelInfo* info, const std::string& pool_name);

}  // namespace modelflow::ort
