// Programs of elementwise ops in the form that a device interprets.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/launches/elements.h"
#include "backends/ops/pointwise_program.h"

namespace modelflow::cuda {

/// Without lines: input `first` as it is. Throws Error(unsupported) when it has too many lines, or too many results
/// that a line asks for later than the next one.
Program device_program(const std::vector<ops::Instruction>& lines, std::size_t first = 0);

}  // namespace modelflow::cuda
