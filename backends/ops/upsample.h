// What Upsample and QUpsample share.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::ops {

std::vector<std::string> upsample_inputs(const Call& call);
Verdict infer_upsample(Call& call);
std::vector<Call> upsample_samples(const char* kind, DType dtype);
/// The nodes around the constant `scales`.
std::string upsample_body(const Call& call, int opset, const std::string& scales);

}  // namespace modelflow::ops
