// Elements of tensors as doubles, and back.
#pragma once

#include <vector>

#include "modelflow/tensor.h"

namespace modelflow::fuzz {

/// A tensor of any number type from doubles: floats rounded to nearest, integers cut to their range.
Tensor tensor_of(DType dtype, const Dims& dims, const std::vector<double>& values);

}  // namespace modelflow::fuzz
