// What Upsample and QUpsample share: pixels that are repeated.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::ops {

std::vector<std::string> upsample_inputs(const Call& call);
std::vector<std::string> upsample_attributes(const Call& call, int opset);
std::string upsample_body(const Call& call, int opset);
Verdict infer_upsample(Call& call);
std::vector<Call> upsample_samples(const char* kind, DType dtype);

}  // namespace modelflow::ops
