// Models in bfloat16 for a machine that does not compute in it.
#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// The same model with its functions written out, in which values in bfloat16 are float32 and rounded to bfloat16
/// behind whatever computes them: ONNX Runtime has next to no kernels for bfloat16 on a CPU.
Model rounded_in_float32(const Model& model);

}  // namespace modelflow
