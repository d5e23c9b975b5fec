// An array in numpy's .npy format.
#pragma once

#include <string_view>

#include "modelflow/tensor.h"

namespace modelflow {

/// An array in numpy's .npy format: little-endian numbers, or texts (types U and S), in C order. Throws
/// Error(invalid_input) on anything else.
Tensor parse_npy(std::string_view bytes);

}  // namespace modelflow
