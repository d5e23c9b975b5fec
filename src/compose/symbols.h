// The dynamic dims of models that become one: kept apart where they are unlike, joined where one feeds the other.
#pragma once

#include <vector>

#include "modelflow/compose.h"

namespace modelflow {

/// A symbol that an earlier part has too reads "part.symbol", or "part.symbol_2" where a part has that. What inference
/// made up becomes unknown.
void separate_symbols(std::vector<Part>& parts);

/// `from` feeds `to`: a symbol of one becomes what the other says, in all parts.
void join_symbols(std::vector<Part>& parts, const Type& from, const Type& to);

}  // namespace modelflow
