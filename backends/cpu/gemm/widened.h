// Ops in bfloat16 on any CPU: their float32 forms, with weights that are widened once and operands that are rounded or
// widened. As exact as the body, and as fast as float32 at most.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// The call that remains when everything is float32. Its constant is the one of `call`: only its dims may be read.
Call float_form(const Call& call);

/// Cost and implementation of a call of MatMulBf16, ConvBf16 or one of their forms with a result in bfloat16.
double widened_cost(const Call& call, const Target& target);
std::unique_ptr<Implementation> create_widened(const Call& call, const Target& target);

}  // namespace modelflow::cpu
