// A parsed model read into the IR.
#pragma once

#include "modelflow/model.h"
#include "src/onnx/external.h"
#include "src/onnx/proto.h"

namespace modelflow::proto {

/// Reads and checks a parsed model; tensor bytes are moved out of it. Throws Error.
Model read_model(ModelProto& proto, ExternalFiles& files, const Limits& limits = {});
/// One local function, as read_model reads it.
Function read_function(FunctionProto& proto);

}  // namespace modelflow::proto
