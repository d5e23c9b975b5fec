// Quotients and bounds of symbolic extents.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "modelflow/shape.h"

namespace modelflow {

/// floor(dim / divisor) for a positive divisor. What does not divide becomes a symbol that is the same for equal
/// quotients, so that (h + 1) / 2 and (h - 1) / 2 + 1 are known to be equal: "modelflow_floor_h_p1_by2". Unknown where
/// that might be a negative number, for symbols stand for none.
Dim floor_div(const Dim& dim, std::int64_t divisor);
/// ceil(dim / divisor) for a positive divisor.
Dim ceil_div(const Dim& dim, std::int64_t divisor);

/// dim / divisor rounded towards 0, as ONNX divides integers, for a positive divisor. Where floor would be -1 for some
/// numbers: a symbol, "modelflow_quotient_n_m3_by4" for (n - 3) / 4, which is max(floor((n - 3) / 4), 0). Unknown where
/// that might be a negative number.
Dim truncated_div(const Dim& dim, std::int64_t divisor);
/// Whether such a symbol is in it.
bool has_open_quotient(const Dim& dim);

/// max(dim, 0). Where the sign is open: a symbol, "modelflow_pos_n_m4" for n - 4, of which the smaller and the larger
/// of two are made, so that the lengths of x[:, :4] and x[:, 4:] add up to n.
Dim at_least_zero(const Dim& dim);
inline Dim smaller(const Dim& a, const Dim& b) { return a - at_least_zero(a - b); }
inline Dim larger(const Dim& a, const Dim& b) { return b + at_least_zero(a - b); }
/// The x of a symbol that stands for max(x, 0), a quotient's too; none of any other, or where x was too long to be
/// spelled.
std::optional<Dim> bounded_by(std::string_view symbol);
/// True where `dim` is proven to be the smaller one of `whole` and a number of at least 1.
bool is_start_of(const Dim& dim, const Dim& whole);

}  // namespace modelflow
