// Models in floats of 16 bits for a machine that does not compute in them.
#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// The same model with its functions written out, in which values in `half` are float32 and rounded behind whatever
/// computes them. ONNX Runtime has next to no kernels for bfloat16 on a CPU, and computes float16 in float32 there,
/// without rounding between its own ops.
Model rounded_in_float32(const Model& model, DType half);

}  // namespace modelflow
