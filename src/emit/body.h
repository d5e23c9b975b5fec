// What a fused op's call becomes in a file.
#pragma once

#include <string>

#include "modelflow/model.h"
#include "modelflow/pass.h"

namespace modelflow {

/// What follows the name in the ONNX text of the function that gives this call its meaning: formals and body. Equal for
/// calls that can share one function. Formal outputs are y, y1, ... as many as the call has.
std::string body_text(const FusedOp& op, const Call& call, int opset);

/// Gives a fused node the attributes that infer adds to its call: known extents that its body need not compute then.
void settle(Node& fused);

/// The function in the IR; `opsets` is that of the model.
Function make_function(const std::string& name, const std::string& text, std::int64_t opset);

}  // namespace modelflow
