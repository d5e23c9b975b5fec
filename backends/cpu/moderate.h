#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// Whether all of these float32 or bfloat16 numbers are below 2^64 in size: neither infinite nor NaN, nor so large that
/// products of two of them, or sums of those, may be. oneDNN makes numbers of NaN in most activations and reads behind
/// the end of rows, where 0 times infinity is NaN: what is not moderate is for other code.
bool moderate(const View& numbers, Invocation& call);
bool moderate(const Tensor& numbers);
/// The same of all operands of a call but the weights (operand 1), which their kernel knows.
bool moderate_operands(Invocation& call);

}  // namespace modelflow::cpu
