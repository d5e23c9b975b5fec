// Quotients and bounds of symbolic extents.
#pragma once

#include "modelflow/shape.h"

namespace modelflow {

/// floor(dim / divisor) for a positive divisor. What does not divide becomes a symbol that is the same for equal
/// quotients, so that (h + 1) / 2 and (h - 1) / 2 + 1 are known to be equal: "modelflow_floor_h_p1_by2". Unknown where
/// that might be a negative number, for symbols stand for none.
Dim floor_div(const Dim& dim, std::int64_t divisor);
/// ceil(dim / divisor) for a positive divisor.
Dim ceil_div(const Dim& dim, std::int64_t divisor);

/// max(dim, 0). Where the sign is open: a symbol, "modelflow_pos_n_m4" for n - 4, of which the smaller and the larger
/// of two are made, so that the lengths of x[:, :4] and x[:, 4:] add up to n.
Dim at_least_zero(const Dim& dim);
inline Dim smaller(const Dim& a, const Dim& b) { return a - at_least_zero(a - b); }
inline Dim larger(const Dim& a, const Dim& b) { return b + at_least_zero(a - b); }
/// True where `dim` is proven to be the smaller one of `whole` and a number of at least 1.
bool is_start_of(const Dim& dim, const Dim& whole);

}  // namespace modelflow
