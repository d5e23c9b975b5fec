// Upsample where it does not repeat pixels but puts new ones between them, or fewer in their place.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// mode is "linear" or "cubic".
bool interpolates(const Call& call);
std::string interpolation_body(const Call& call, int opset);
std::vector<std::string> interpolation_attributes(const Call& call, int opset);
Verdict infer_interpolation(Call& call);
/// What ONNX Runtime's Resize takes as if it moved so many bytes more (measured); none where pixels are repeated.
double plain_upsample_bytes(const Call& call);
std::vector<Call> interpolation_samples();

}  // namespace modelflow::ops
