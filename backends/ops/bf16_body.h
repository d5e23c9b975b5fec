// Bodies of ops in bfloat16, made of the body of their float32 form.
#pragma once

#include <string>

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// The body of a float32 op behind `casts`, which bring its operands out of bfloat16. Throws Error(unsupported) below
/// the opset whose Cast knows it.
std::string body_behind(const std::string& casts, const FusedOp& op, const Call& call, int opset);
/// "y = Cast <to = 1> (x)\n": float32 out of bfloat16 or of float32, so that one body serves both.
std::string widening(const std::string& y, const std::string& x);
/// The same body with its result rounded to bfloat16.
std::string rounding_result(std::string body);

}  // namespace modelflow::ops
