// Symbols for extents that are functions of others.
#pragma once

#include <optional>
#include <string_view>

#include "modelflow/shape.h"

namespace modelflow {

/// True where the dim is at least 0 for all values of its symbols, none of which is ever negative.
bool never_negative(const Dim& dim);

/// How these symbols begin, and no symbol of a user: a file may say "floor_h_p1_by2" of something else.
inline constexpr std::string_view kDerived = "modelflow_";

/// How symbols begin that stand for nothing but an extent that nobody knows.
inline constexpr std::string_view kUnnamed = "modelflow_dim_";

/// The symbol for a function of `dim` that no polynomial says: the same for the same function of the same dim, another
/// for any other, and readable where that is short ("modelflow_floor_h_p1_by2"). The function must never be negative.
Dim derived_symbol(std::string_view function, const Dim& dim, std::string_view end = "");

/// The `dim` of derived_symbol(function, dim, end); none of any other symbol, or where that was too long to be spelled.
std::optional<Dim> derived_from(std::string_view symbol, std::string_view function, std::string_view end);

/// Made of such a symbol, among others.
bool is_derived(const Dim& dim);

/// Of two extents that are the same in every run the one that says most: a number, then one without such symbols.
Dim plainer(const Dim& a, const Dim& b);

}  // namespace modelflow
