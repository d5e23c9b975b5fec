// A reference whose means over many numbers are exact.
#pragma once

#include <optional>

#include "modelflow/model.h"

namespace modelflow {

/// The model with every float32 ReduceMean, ReduceSum and InstanceNormalization computed in double precision; nothing
/// when it has none. ONNX Runtime adds the numbers of an image one after the other: the mean of 32768 equal ones is off
/// by 400 last digits, and InstanceNormalization makes 316 times as much (1 / sqrt(epsilon)) of what is left of such an
/// image where the result is 0. No such digits in the inputs explain that, so a kernel that adds better would be
/// blamed.
std::optional<Model> with_exact_means(const Model& model);

}  // namespace modelflow
