// What a residual behind the activation of a convolution does to vectors of results. For files named so, see vector.h.
#pragma once

#include "backends/cpu/vector/vector.h"
#include "backends/ops/residual.h"

namespace modelflow::cpu {
namespace {

/// Runs body(f) where the residual stands behind the activation: f joins it to a result.
template <class Body>
MODELFLOW_INLINE void with_late_residual(ops::Residual residual, Body body) {
  if (residual == ops::Residual::after) body([](Floats x, Floats other) { return x + other; });
  if (residual == ops::Residual::times) body([](Floats x, Floats other) { return x * other; });
}

}  // namespace
}  // namespace modelflow::cpu
