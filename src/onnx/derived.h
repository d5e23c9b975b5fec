#pragma once

#include <string_view>

#include "modelflow/shape.h"

namespace modelflow {

/// True where the dim is at least 0 for all values of its symbols, none of which is ever negative.
bool never_negative(const Dim& dim);

/// The symbol for a function of `dim` that no polynomial says: the same for the same function of the same dim, another
/// for any other, and readable where that is short ("floor_h_p1_by2"). The function must never be negative.
Dim derived_symbol(std::string_view function, const Dim& dim, std::string_view end = "");

}  // namespace modelflow
