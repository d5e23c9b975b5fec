// Values of an optimized model as the original has them.
#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// `optimized` with nodes, read by nobody, that make the original's values of what stands for them: with channels
/// second where it moved these behind the other axes, and as int8 where it made 8-bit numbers unsigned. They go by the
/// original's names. Both models have their types.
Model with_twins(const Model& optimized, const Model& original);

}  // namespace modelflow
