#pragma once

#include "modelflow/shape.h"

namespace modelflow {

/// floor(dim / divisor) for a positive divisor. What does not divide becomes a symbol that is the same for equal
/// quotients, so that (h + 1) / 2 and (h - 1) / 2 + 1 are known to be equal: "floor_h_p1_by2".
Dim floor_div(const Dim& dim, std::int64_t divisor);
inline Dim ceil_div(const Dim& dim, std::int64_t divisor) { return floor_div(dim + Dim(divisor - 1), divisor); }

}  // namespace modelflow
