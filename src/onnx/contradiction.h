// Models that contradict themselves.
#pragma once

#include <string>

#include "modelflow/model.h"

namespace modelflow {

/// The first node that its operator's schema calls impossible, and why; empty when there is none. Types are inferred
/// anew from inputs and constants: what a file says of the values between may be wrong without harm. Operators that
/// libonnx does not know are taken to be right.
std::string contradiction(const Model& model);

}  // namespace modelflow
